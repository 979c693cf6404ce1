import Glibc

/// How many descriptors this process may have open.
public enum OpenFileLimit {
  /// Raises the soft limit as far as the hard one allows, up to `wanted`; it is never lowered.
  /// - Returns: what holds now.
  public static func raise(to wanted: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    let target = min(rlim_t(max(wanted, 0)), limit.rlim_max)
    if target > limit.rlim_cur {
      var raised = limit
      raised.rlim_cur = target
      if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
    }
    return Int(clamping: limit.rlim_cur)
  }
}
