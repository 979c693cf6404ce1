/// A provider all of whose children show (seed 002, `ComposedSectionProvider`).
public final class ComposedFeed: ProviderFeed {
  public override var kind: String { "composed" }
}
