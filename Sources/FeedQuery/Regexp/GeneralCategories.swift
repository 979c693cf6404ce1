/// The sets of `\p{…}`: the general categories of Unicode, from the tables of the standard library.
struct GeneralCategories: Sendable {
  private let sets: [String: CodePointSet]

  /// The only instance. The first use takes about 20 ms.
  static let shared = GeneralCategories()

  /// The set of a category of RFC 9485, such as `L` or `Lu`; nil for other names.
  func set(_ name: String) -> CodePointSet? { sets[name] }

  private init() {
    // Planes 4 to 13 are unassigned in all versions of Unicode so far; planes 15 and 16 are for private use.
    var ranges: [String: [ClosedRange<UInt32>]] = [
      "Cn": [0x40000...0xDFFFF, 0xFFFFE...0xFFFFF, 0x10FFFE...0x10FFFF],
      "Co": [0xF0000...0xFFFFD, 0x100000...0x10FFFD],
    ]
    for part in [0...0xD7FF, 0xE000...0x3FFFF, 0xE0000...0xEFFFF] as [ClosedRange<UInt32>] {
      Self.collect(part, into: &ranges)
    }
    var sets: [String: CodePointSet] = [:]
    for (name, list) in ranges {
      sets[name] = CodePointSet(union: list)
      ranges[String(name.prefix(1)), default: []].append(contentsOf: list)
    }
    for group in ["L", "M", "N", "P", "Z", "S", "C"] {
      sets[group] = CodePointSet(union: ranges[group] ?? [])
    }
    self.sets = sets
  }

  /// Adds the code points of `part` to the ranges of their categories.
  ///
  /// - Precondition: `part` has no surrogates.
  private static func collect(_ part: ClosedRange<UInt32>, into ranges: inout [String: [ClosedRange<UInt32>]]) {
    assert(!part.overlaps(0xD800...0xDFFF), "the range has surrogates")
    var (name, first): (String?, UInt32) = (nil, part.lowerBound)
    var current: Unicode.GeneralCategory?
    for codePoint in part {
      guard let category = Unicode.Scalar(codePoint)?.properties.generalCategory, category != current else { continue }
      if let name { ranges[name, default: []].append(first...codePoint - 1) }
      (name, first, current) = (Self.name(category), codePoint, category)
    }
    if let name { ranges[name, default: []].append(first...part.upperBound) }
  }

  private static func name(_ category: Unicode.GeneralCategory) -> String? {
    switch category {
    case .uppercaseLetter: "Lu"
    case .lowercaseLetter: "Ll"
    case .titlecaseLetter: "Lt"
    case .modifierLetter: "Lm"
    case .otherLetter: "Lo"
    case .nonspacingMark: "Mn"
    case .spacingMark: "Mc"
    case .enclosingMark: "Me"
    case .decimalNumber: "Nd"
    case .letterNumber: "Nl"
    case .otherNumber: "No"
    case .connectorPunctuation: "Pc"
    case .dashPunctuation: "Pd"
    case .openPunctuation: "Ps"
    case .closePunctuation: "Pe"
    case .initialPunctuation: "Pi"
    case .finalPunctuation: "Pf"
    case .otherPunctuation: "Po"
    case .mathSymbol: "Sm"
    case .currencySymbol: "Sc"
    case .modifierSymbol: "Sk"
    case .otherSymbol: "So"
    case .spaceSeparator: "Zs"
    case .lineSeparator: "Zl"
    case .paragraphSeparator: "Zp"
    case .control: "Cc"
    case .format: "Cf"
    case .privateUse: "Co"
    case .unassigned: "Cn"
    case .surrogate: nil
    @unknown default: nil
    }
  }
}
