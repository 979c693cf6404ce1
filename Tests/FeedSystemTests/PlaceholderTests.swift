import Testing
@testable import FeedSystem
