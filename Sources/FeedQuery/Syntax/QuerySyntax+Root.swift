extension QuerySyntax {
  /// Whether a filter inside refers to `$`.
  var filtersUseRoot: Bool {
    segments.contains { segment in
      segment.selectors.contains { selector in
        if case .filter(let condition) = selector { condition.usesRoot } else { false }
      }
    }
  }

  fileprivate var usesRoot: Bool { isAbsolute || filtersUseRoot }
}

extension ConditionSyntax {
  fileprivate var usesRoot: Bool {
    switch self {
    case .any(let parts), .all(let parts): parts.contains(where: \.usesRoot)
    case .not(let inner): inner.usesRoot
    case .comparison(_, let left, let right): left.usesRoot || right.usesRoot
    case .exists(let query): query.usesRoot
    case .pattern(let pattern): pattern.value.usesRoot || pattern.pattern.usesRoot
    }
  }
}

extension OperandSyntax {
  fileprivate var usesRoot: Bool {
    switch self {
    case .literal: false
    case .query(let query), .count(let query), .value(let query): query.usesRoot
    case .length(let inner): inner.usesRoot
    }
  }
}
