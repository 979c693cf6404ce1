import Testing
@testable import FeedServer
