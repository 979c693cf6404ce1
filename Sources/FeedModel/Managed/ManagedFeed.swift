/// The rows of a query on another program's database (seed 002, `ManagedSection`).
///
/// The rows come as a whole, and only what is different changes. A feed without a section column is one section, named as the
/// feed. With one, there is a section for every value, in order of first appearance, named `feed/value`; the rows without a
/// value (NULL or an empty text) stand in a section named as the feed; and there is none while there are no rows.
public final class ManagedFeed: Feed {
  let state: ManagedState
  /// How it stands with the database. Not a part of any commit.
  public internal(set) var source = SourceStatus(.starting)

  public override var kind: String { "managed" }
  /// What is read, and how rows are told apart.
  public var content: ManagedDefinition { state.definition }

  init(name: String, definition: ManagedDefinition, limits: Limits, seed: UInt64, revision: UInt64) {
    state = ManagedState(feed: name, definition: definition, limits: limits, seed: seed)
    super.init(name: name, revision: revision)
  }

  public override var sectionCount: Int { isGone ? 0 : state.sections.count }

  public override func section(at index: Int) -> Section { state.sections[index] }

  public override var hasTypes: Bool { content.type != nil }
}
