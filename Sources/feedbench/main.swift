import FeedSystem
import Glibc

exit(BenchmarkProgram.main(Array(CommandLine.arguments.dropFirst())))
