import Testing
@testable import FeedQuery
