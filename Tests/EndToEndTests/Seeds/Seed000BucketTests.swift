import Testing

/// Seed 000, Bucket: every example of its page, through the socket.
@Suite("seed000 Bucket")
struct Seed000BucketTests {
  @Test func settingPattern() throws { try SlotsExamples("bucket").setsAPattern() }
  @Test func repeatables() throws { try SlotsExamples("bucket").repeats() }
  @Test func gettingContents() throws { try SlotsExamples("bucket").getsContents() }
  @Test func realWorldExample() throws { try SlotsExamples("bucket").showsARealFeed() }
}
