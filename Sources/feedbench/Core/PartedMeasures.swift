import FeedSystem

/// The measurements of a command in parts, all of which are run unless options name some.
protocol PartedMeasures: Sendable {
  associatedtype Part: RawRepresentable<String>, CaseIterable

  /// The part of the usual numbers of updates and elements, in per cent.
  var scale: Int { get }

  init(scale: Int)
  func run(_ part: Part, _ report: inout Report) throws
}

extension PartedMeasures {
  func scaled(_ count: Int) -> Int { max(1, count * scale / 100) }
}

extension BenchmarkCommand {
  /// A command that runs the measurements of a type.
  static func parts<Measures: PartedMeasures>(
    of type: Measures.Type, name: String, summary: String, about: String
  ) -> BenchmarkCommand {
    BenchmarkCommand(
      name: name, summary: summary, about: about,
      options: [
        OptionDescription(
          "part", value: .choice(Measures.Part.allCases.map(\.rawValue)), help: "part of the measurements",
          defaultText: "all parts", repeats: true),
        OptionDescription(
          "scale", value: .integer(1...100), help: "per cent of the usual number of updates and elements",
          defaultText: "100"),
      ]
    ) { options, report in
      let parts = options.texts("part").compactMap(Measures.Part.init)
      let measures = Measures(scale: options.integer("scale") ?? 100)
      for part in parts.isEmpty ? Array(Measures.Part.allCases) : parts { try measures.run(part, &report) }
    }
  }
}
