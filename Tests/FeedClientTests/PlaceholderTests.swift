import Testing
@testable import FeedClient
