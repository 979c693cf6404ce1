// swift-tools-version: 6.1
import PackageDescription

/// scripts/test sets FEEDD_SANITIZER to address or thread. The thread sanitizer must see the mutexes
/// (Sources/FeedJSON/Helpers.swift); memory is not measured under either.
let sanitizer: [SwiftSetting] =
  Context.environment["FEEDD_SANITIZER"].map { [.define("\($0.uppercased())_SANITIZER")] } ?? []

/// Invariants are checked after every mutation in debug builds; release builds keep only the cheap assertions.
let settings: [SwiftSetting] =
  [.swiftLanguageMode(.v6), .define("CHECK_INVARIANTS", .when(configuration: .debug))] + sanitizer

/// The daemon's own modules are built for release without the checks at run time that accesses to the properties of objects
/// do not overlap (debug builds and so the tests have them): feedbench engine, an update with 8 watchers, 2011 to 1751 ns
/// (0.87). Functions of one such module are inlined in the others: 5 to 8 % more updates a second over the socket. Modules that
/// FeedClient stands on must not have unsafe flags, or no package could depend on it.
let daemonSettings =
  settings + [
    .unsafeFlags(["-enforce-exclusivity=unchecked", "-cross-module-optimization"], .when(configuration: .release))
  ]

/// The optimizer for debug builds, with all assertions and checks of exclusivity. The simulator and its reference model always
/// have it: each run of the tests plays thousands of histories.
let optimizer: [SwiftSetting] = [
  .unsafeFlags(
    ["-O", "-wmo", "-num-threads", "2", "-disable-batch-mode", "-assert-config", "Debug"],
    .when(configuration: .debug))
]

/// Lets the simulator use the internals of the reference model also in release builds.
let testable: [SwiftSetting] = [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

/// scripts/test sets FEEDD_OPTIMIZE. It optimizes the modules in which tests spend time, and compiles every other module as a
/// whole: in batches the compiler checks shared declarations and expands macros again for each batch and for the interface. A
/// clean build takes 490 instead of 630 seconds of the processor. Without the variable, a build compiles only files that
/// changed. Other packages never see these flags.
let isForTests = Context.environment["FEEDD_OPTIMIZE"] != nil

/// scripts/fuzz sets FEEDD_FUZZ. Fuzzers spend time in all modules.
let isForFuzzing = Context.environment["FEEDD_FUZZ"] != nil

let moduleOptimizer = isForTests ? optimizer : []
let wholeModule: [SwiftSetting] =
  isForTests
  ? [
    .unsafeFlags(
      ["-wmo", "-num-threads", "1", "-no-emit-module-separately-wmo", "-disable-batch-mode"],
      .when(configuration: .debug))
  ] : []

/// A library module of the daemon and the modules it may import; the arrows go one way.
///
/// - Parameter isHot: whether tests spend time in the module, so that scripts/test optimizes it.
func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], settings: [SwiftSetting] = settings, isHot: Bool = true,
  resources: [Resource] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, resources: resources,
    swiftSettings: settings + (isHot || isForFuzzing ? moduleOptimizer : wholeModule))
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, swiftSettings: daemonSettings + wholeModule)
}

/// Tests do not depend on the programs that they start, which every build of the tests makes too: so they are compiled earlier.
func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["TestSupport"], exclude: exclude,
    swiftSettings: settings + wholeModule)
}

/// What the tests of the engine depend on.
let engineTests: [Target.Dependency] = [
  "EngineTesting", "FeedEngine", "FeedServer", "FeedJSON", "FeedChange", "FeedModel", "FeedWire", "ReferenceModel",
]

let package = Package(
  name: "feedd",
  products: [
    .executable(name: "feedd", targets: ["feedd"]),
    .executable(name: "feedclient", targets: ["feedclient"]),
    .executable(name: "feedbench", targets: ["feedbench"]),
    .library(name: "FeedClient", targets: ["FeedClient"]),
  ],
  targets: [
    .target(name: "CLinux"),
    .target(name: "CNats", linkerSettings: [.linkedLibrary("dl")]),
    .target(name: "CProcessor"),
    .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
    module("FeedJSON"),
    module("FeedQuery", ["FeedJSON"], settings: daemonSettings),
    module("FeedChange", ["CProcessor", "FeedJSON"]),
    module("FeedModel", ["CProcessor", "FeedJSON", "FeedQuery", "FeedChange"], settings: daemonSettings),
    module("FeedWire", ["FeedJSON", "FeedChange"]),
    module(
      "FeedEngine", ["FeedJSON", "FeedQuery", "FeedChange", "FeedModel", "FeedWire"], settings: daemonSettings),
    module("FeedSQLite", ["CSQLite"]),
    module(
      "FeedSources", ["FeedJSON", "FeedChange", "FeedModel", "FeedSQLite", "FeedSystem"], settings: daemonSettings,
      isHot: false),
    module(
      "FeedStorage", ["FeedJSON", "FeedChange", "FeedModel", "FeedSQLite", "FeedSystem"], settings: daemonSettings),
    module("FeedSystem", ["CLinux", "CProcessor", "FeedJSON"], isHot: false),
    module(
      "FeedGroup", ["CNats", "FeedJSON", "FeedChange", "FeedModel", "FeedSystem"], settings: daemonSettings,
      isHot: false),
    module(
      "FeedServer",
      [
        "CLinux", "FeedJSON", "FeedChange", "FeedClient", "FeedEngine", "FeedGroup", "FeedModel", "FeedSources",
        "FeedStorage", "FeedWire", "FeedSystem",
      ],
      settings: daemonSettings, isHot: false),
    module("FeedClient", ["FeedJSON", "FeedChange", "FeedWire", "FeedSystem"], isHot: false),
    // The completions are links to scripts/completions.
    module(
      "FeedCommands", ["FeedJSON", "FeedQuery", "FeedChange", "FeedClient", "FeedWire", "FeedSystem"], isHot: false,
      resources: ["feedclient.bash", "_feedclient", "feedclient.fish"].map { .embedInCode("Completions/\($0)") }),
    program("feedd", ["FeedServer", "FeedEngine", "FeedSystem"]),
    program("feedclient", ["FeedCommands", "FeedStorage", "FeedSystem"]),
    program("feedbench", ["CLinux", "FeedJSON", "FeedModel", "FeedWire", "FeedEngine", "FeedSystem"]),
    .executableTarget(
      name: "notices", dependencies: ["FeedClient"], path: "Tests/Examples/notices",
      swiftSettings: settings + wholeModule),
    .target(
      name: "TestSupport", dependencies: ["CLinux", "FeedJSON", "FeedChange", "FeedSystem"], path: "Tests/TestSupport",
      swiftSettings: settings + wholeModule),
    .target(
      name: "EngineSupport", dependencies: ["FeedEngine"], path: "Tests/EngineSupport",
      swiftSettings: settings + optimizer),
    .target(
      name: "ReferenceModel", dependencies: ["FeedChange", "FeedModel", "TestSupport"],
      path: "Tests/ReferenceModel", swiftSettings: settings + optimizer + testable),
    .target(
      name: "Simulator",
      dependencies: [
        "EngineSupport", "FeedEngine", "FeedJSON", "FeedChange", "FeedModel", "FeedServer", "FeedStorage", "FeedSystem",
        "FaultyDisk", "FaultyFiles", "FaultySockets", "ReferenceModel", "TestSupport",
      ],
      path: "Tests/Simulator", swiftSettings: settings + optimizer),
    tests("FeedJSONTests", ["FeedJSON"]),
    tests("FeedQueryTests", ["FeedQuery", "FeedJSON"]),
    tests("FeedChangeTests", ["FeedChange", "FeedJSON"]),
    tests("FeedModelTests", ["FeedModel", "FeedChange", "FeedJSON", "FeedQuery"]),
    tests("FeedWireTests", ["FeedWire", "FeedJSON", "FeedChange"]),
    // A test target without tests, because it needs internals of the engine. The tests of the engine are two modules, which the
    // build compiles side by side.
    tests("EngineTesting", ["EngineSupport", "FeedEngine", "FeedServer", "FeedJSON", "FeedModel"]),
    tests("FeedEngineTests", engineTests),
    tests("FeedSessionTests", engineTests),
    tests("SimulationTests", ["Simulator", "ReferenceModel", "FaultyDisk", "FeedEngine", "FeedModel", "FeedStorage"]),
    tests("FeedSQLiteTests", ["FeedSQLite"]),
    .target(name: "FaultyDisk", dependencies: ["CSQLite"], path: "Tests/FaultyDisk"),
    .target(
      name: "FaultyFiles", dependencies: ["FaultyDisk", "FeedSystem"], path: "Tests/FaultyFiles",
      swiftSettings: settings + wholeModule),
    .target(name: "FaultySockets", path: "Tests/FaultySockets"),
    tests(
      "FeedStorageTests",
      [
        "EngineSupport", "FeedStorage", "FeedEngine", "FeedJSON", "FeedChange", "FeedModel", "FeedSQLite", "FeedSystem",
        "FaultyDisk", "FaultyFiles",
      ],
      exclude: ["Corpus"]),
    tests("FeedSourcesTests", ["FeedSources", "FeedJSON", "FeedChange", "FeedModel", "FeedSQLite", "FeedSystem"]),
    tests("FeedSystemTests", ["FeedSystem"]),
    tests("FeedGroupTests", ["FeedGroup", "FeedJSON", "FeedModel"]),
    tests(
      "FeedServerTests",
      [
        "FaultySockets", "FeedServer", "FeedEngine", "FeedJSON", "FeedChange", "FeedModel", "FeedSQLite", "FeedSystem",
        "ReferenceModel",
      ]),
    tests("FeedClientTests", ["FeedClient", "FeedJSON", "FeedChange", "FeedWire", "FeedSystem"]),
    tests(
      "FeedCommandsTests",
      ["FeedCommands", "FeedClient", "FeedJSON", "FeedQuery", "FeedChange", "FeedWire", "FeedSystem"]),
    tests("EndToEndTests", ["FeedClient", "FeedJSON", "FeedChange", "FeedModel", "FeedWire", "FeedSystem"]),
  ]
)

// Only scripts/fuzz builds the fuzzers: they need flags of the compiler and the linker that it passes.
if isForFuzzing {
  package.targets.append(
    .executableTarget(
      name: "feedd-fuzz",
      dependencies: [
        "FeedChange", "FeedClient", "FeedEngine", "FeedJSON", "FeedModel", "FeedQuery", "FeedServer", "FeedSQLite",
        "FeedStorage", "FeedSystem", "FeedWire", "Simulator",
      ],
      path: "Tests/Fuzz/Fuzzer", swiftSettings: settings))
}
