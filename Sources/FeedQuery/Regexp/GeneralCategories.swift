/// The sets behind `\p{…}`: Unicode's general categories, from the standard library's tables.
struct GeneralCategories: Sendable {
  private let sets: [String: CodePointSet]

  /// Made once, at the first use, in about 15 ms.
  static let shared = GeneralCategories()

  /// The set of a category's name as RFC 9485 allows it, such as `L` or `Lu`; nil for other names.
  func set(_ name: String) -> CodePointSet? { sets[name] }

  private init() {
    var ranges: [String: [ClosedRange<UInt32>]] = [:]
    var (current, first): (Unicode.GeneralCategory?, UInt32) = (nil, 0)
    func close(before next: UInt32) {
      if let current, let name = Self.name(current) { ranges[name, default: []].append(first...next - 1) }
    }
    for codePoint in 0...CodePointSet.last + 1 {
      let category = Self.category(codePoint)
      guard category != current else { continue }
      close(before: codePoint)
      (current, first) = (category, codePoint)
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

  /// The category of a code point; nil for surrogates, which no text holds, and past the end.
  private static func category(_ codePoint: UInt32) -> Unicode.GeneralCategory? {
    // Planes 4 to 13 are empty in every version of Unicode so far, and most of the work.
    if codePoint >= 0x40000, codePoint < 0xE0000 { return .unassigned }
    return Unicode.Scalar(codePoint)?.properties.generalCategory
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
