import Testing
@testable import FeedJSON
