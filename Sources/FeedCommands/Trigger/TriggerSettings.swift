import FeedClient
import FeedJSON
import FeedSystem

/// The options of `trigger`.
struct TriggerSettings {
  let feed: String
  let command: [String]
  let state: String
  /// Whether the command runs once for all changes that came meanwhile, and not for each.
  let isBatch: Bool
  let section: SectionName?
  let kinds: Set<String>
  let filter: ChangeFilter
  /// The text of `--where`.
  let condition: String?
  /// Whether the rows that are there at the first start are handed over as added.
  let initial: Bool
  let retries: Int
  let jobs: Int

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    feed = invocation.operand(0)
    command = Array(invocation.operands.dropFirst())
    guard let path = words.text("state") else { throw invocation.usage("missing option --state FILE") }
    state = path
    if words.contains("each"), words.contains("batch") {
      throw invocation.usage("--each and --batch exclude each other")
    }
    isBatch = words.contains("batch")
    section = words.text("section").map { [feed] in SectionName(feed: feed, word: $0) }
    condition = words.text("where")
    filter = try ChangeFilter(words.text("on") ?? "added,updated,deleted", option: "on", where: condition)
    kinds = filter.words ?? []
    initial = words.contains("initial")
    retries = words.integer("retries") ?? 10
    jobs = words.integer("jobs") ?? 1
  }
}
