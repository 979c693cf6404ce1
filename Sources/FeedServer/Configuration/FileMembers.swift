import FeedEngine
import FeedJSON
import FeedModel

/// Refuses unknown and repeated members in a configuration file.
enum FileMembers {
  static let file = ["feeds", "limits", "access"]
  static let rule = ["uid", "user", "gid", "group", "feeds", "allow"]

  /// Checks one object of the file.
  static func check(
    _ object: JSONView, _ known: [String], _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    do throws(KnownMembers.Unknown) {
      try KnownMembers.check(object, known, at: place.isEmpty ? "" : "\(place).", repeats: .refused)
    } catch {
      throw explain(error, error.path, text)
    }
  }

  /// Checks a definition and the objects in it.
  static func check(
    definition object: JSONView, _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    do throws(KnownMembers.Unknown) {
      try KnownMembers.check(definition: object, repeats: .refused)
    } catch {
      throw explain(error, "\(place).\(error.path)", text)
    }
  }

  private static func explain(
    _ error: KnownMembers.Unknown, _ path: String, _ text: ConfigurationText
  ) -> ConfigurationError {
    ConfigurationError(
      text.place(error.offset, path), error.advice.map { "unknown member; \($0)" } ?? "is given twice")
  }
}
