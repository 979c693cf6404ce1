import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// An answer that takes longer than one turn of the loop may: it is worked out in parts while others are served.
///
/// Requests behind it on the same connection wait, so responses keep the order of requests.
protocol Job: AnyObject {
  /// Whether the next step waits for something else to happen: time alone does not bring it on.
  var isWaiting: Bool { get }
  /// Does about `budget` elements' worth of work. Returns whether the answer is ready to be written.
  func advance(budget: Int) throws(FeedError) -> Bool
  /// Appends the members of the result.
  func appendResult(to out: inout ByteBuffer)
}

extension Job {
  var isWaiting: Bool { false }
}

/// The request that a job answers: its id outlives the frame it came in.
struct JobTicket {
  let id: [UInt8]?
  /// The feed that the request named.
  let feed: String?

  init(_ reply: Reply, _ parameters: Parameters) {
    id = reply.id.map { Array($0) }
    feed = parameters.member("feed")?.truncatedName
  }
}
