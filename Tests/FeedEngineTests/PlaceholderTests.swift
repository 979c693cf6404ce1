import Testing
@testable import FeedEngine
