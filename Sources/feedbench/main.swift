import FeedSystem
import Glibc

exit(BenchProgram.main(Array(CommandLine.arguments.dropFirst())))
