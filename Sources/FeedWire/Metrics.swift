import FeedJSON

/// Converts the result of `stats` to metrics in the Prometheus text exposition format.
///
/// Their names begin with `feedd_`; those of counters end in `_total`.
public enum Metrics {
  struct Metric: Sendable {
    let member: String
    /// The name without `feedd_`.
    let name: String
    let help: String

    var isCounter: Bool { name.hasSuffix("_total") }
  }

  static let all: [Metric] = [
    Metric(member: "revision", name: "revision", help: "Last commit of the daemon."),
    Metric(member: "uptime", name: "uptime_seconds", help: "Seconds since the daemon started."),
    Metric(member: "connectionsOpen", name: "connections_open", help: "Open connections."),
    Metric(member: "feeds", name: "feeds", help: "Defined feeds."),
    Metric(member: "elements", name: "elements", help: "Elements of all feeds."),
    Metric(member: "elementBytes", name: "element_bytes", help: "Bytes of all elements."),
    Metric(member: "definitionBytes", name: "definition_bytes", help: "Bytes of all definitions."),
    Metric(member: "selected", name: "selected_rows", help: "Selected rows of feeds that show others."),
    Metric(member: "viewRows", name: "view_rows", help: "Rows that views keep."),
    Metric(member: "historyBytes", name: "history_bytes", help: "Bytes of changes kept for watches that resume."),
    Metric(member: "watches", name: "watches", help: "Watches of all connections."),
    Metric(member: "queuedBytes", name: "queued_bytes", help: "Bytes queued for connections."),
    Metric(member: "memoryBytes", name: "memory_bytes", help: "Memory of the daemon that is in use (resident set)."),
    Metric(
      member: "logBytes", name: "log_bytes", help: "Bytes of the stored log: its newest image and what came since."),
    Metric(member: "imageBytes", name: "image_bytes", help: "Bytes of the newest image."),
    Metric(member: "segmentBytes", name: "segment_bytes", help: "Bytes of the segments of the log."),
    Metric(
      member: "imagedAt", name: "image_timestamp_seconds", help: "Moment of the newest image, in seconds since 1970."),
    Metric(member: "heldBytes", name: "held_bytes", help: "Bytes held for connections besides those queued."),
    Metric(member: "connections", name: "connections_total", help: "Connections accepted."),
    Metric(
      member: "refusedConnections", name: "refused_connections_total", help: "Connections refused because of a limit."),
    Metric(member: "requests", name: "requests_total", help: "Requests received."),
    Metric(member: "errors", name: "errors_total", help: "Requests refused."),
    Metric(member: "commits", name: "commits_total", help: "Commits."),
    Metric(member: "deltas", name: "deltas_total", help: "Deltas queued for watches."),
    Metric(
      member: "composedDeltas", name: "composed_deltas_total", help: "Deltas composed for watches that were behind."),
    Metric(member: "snapshots", name: "snapshots_total", help: "Snapshots begun."),
    Metric(member: "resets", name: "resets_total", help: "Snapshots that replaced the rows of a watch."),
    Metric(member: "bytesIn", name: "received_bytes_total", help: "Bytes of requests received."),
    Metric(member: "bytesOut", name: "sent_bytes_total", help: "Bytes written to connections."),
  ]

  /// Members that only a daemon in a group has.
  static let ofGroups: [Metric] = [
    Metric(member: "logReachable", name: "log_reachable", help: "Whether the log of the group is reachable, 1 or 0."),
    Metric(member: "logPosition", name: "log_position", help: "Last message of the group's log that was read."),
    Metric(member: "logLast", name: "log_last", help: "Last message of the group's log."),
    Metric(member: "members", name: "group_members", help: "Members of the group."),
  ]

  /// Members of the objects in `users` of `stats`, for each user that stores something.
  static let ofUsers: [Metric] = [
    Metric(member: "feeds", name: "user_feeds", help: "Feeds that a user defined."),
    Metric(member: "elements", name: "user_elements", help: "Elements of the feeds that a user defined."),
    Metric(member: "elementBytes", name: "user_element_bytes", help: "Bytes of these elements."),
    Metric(member: "definitionBytes", name: "user_definition_bytes", help: "Bytes of the definitions of these feeds."),
    Metric(member: "selected", name: "user_selected_rows", help: "Selected rows of those that show others."),
    Metric(member: "viewRows", name: "user_view_rows", help: "Rows that the views among these keep."),
  ]

  /// Returns the metrics of a result of `stats`. Members that are not numbers or not known are left out.
  public static func text(of stats: JSONView) -> String {
    var values: [String: String] = [:]
    for member in stats.members where member.value.kind == .number {
      values[member.key.string ?? ""] = String(decoding: member.value.text, as: UTF8.self)
    }
    var text = ""
    for metric in all + ofGroups {
      guard let value = values[metric.member] else { continue }
      text += head(of: metric) + "feedd_\(metric.name) \(value)\n"
    }
    guard let users = stats.member("users"), users.kind == .array, users.count > 0 else { return text }
    for metric in ofUsers {
      text += head(of: metric)
      for user in users.elements {
        guard let uid = user.member("uid")?.int,
          let value = user.members.first(where: { $0.key.string == metric.member })
        else { continue }
        text += "feedd_\(metric.name){uid=\"\(uid)\"} \(value.value.int ?? 0)\n"
      }
    }
    return text
  }

  private static func head(of metric: Metric) -> String {
    "# HELP feedd_\(metric.name) \(metric.help)\n# TYPE feedd_\(metric.name) \(metric.isCounter ? "counter" : "gauge")\n"
  }
}
