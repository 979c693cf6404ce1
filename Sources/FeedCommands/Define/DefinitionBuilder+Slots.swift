import FeedClient
import FeedSystem

extension DefinitionBuilder {
  /// The part of a definition that only slots feeds have.
  struct Slots: Equatable {
    var contents: [(type: String, feed: String)] = []
    var pattern: [String] = []
    var header: [String] = []
    var repeatables: [String] = []
    var defaultType: String?
    var fixed: [(row: Int, type: String)] = []

    init() {}

    /// Reads the options of `define`.
    init(_ options: ParsedOptions) throws(Failure) {
      for word in options.texts("content") {
        let (type, feed) = DefinitionBuilder.split(word)
        guard !type.isEmpty, let feed, !feed.isEmpty else {
          throw .usage("define: --content '\(word)': expected TYPE=FEED")
        }
        contents.append((type, feed))
      }
      for word in options.texts("fixed") {
        let (row, type) = DefinitionBuilder.split(word)
        guard let row = Int(row), row >= 0, let type, !type.isEmpty else {
          throw .usage("define: --fixed '\(word)': expected ROW=TYPE, such as 0=Banner")
        }
        fixed.append((row, type))
      }
      pattern = Self.types(options, "pattern")
      header = Self.types(options, "header")
      repeatables = Self.types(options, "repeatable")
      defaultType = options.text("default")
    }

    private static func types(_ options: ParsedOptions, _ name: String) -> [String] {
      options.texts(name).flatMap { $0.split(separator: ",").map(String.init) }
    }

    static func == (left: Slots, right: Slots) -> Bool { left.json == right.json }

    /// The members that were given.
    private var json: String {
      var object = Parameters()
      add(to: &object)
      return object.finish()
    }

    /// Adds the members that were given.
    func add(to params: inout Parameters) {
      if !contents.isEmpty {
        var object = Parameters()
        for content in contents { object.add(content.type, content.feed) }
        params.add("contents", json: object.finish())
      }
      if !pattern.isEmpty { params.add("pattern", json: pattern.map(Operands.quoted)) }
      if !header.isEmpty { params.add("header", json: header.map(Operands.quoted)) }
      if !repeatables.isEmpty { params.add("repeatables", json: repeatables.map(Operands.quoted)) }
      if let defaultType { params.add("default", defaultType) }
      if !fixed.isEmpty {
        var object = Parameters()
        for entry in fixed { object.add("\(entry.row)", entry.type) }
        params.add("fixed", json: object.finish())
      }
    }
  }
}
