import FeedClient

struct Notice: Codable {
  var id: Int
  var text: String
}

/// What the drawers draw into: here a line of text, in other programs a cell or a view.
final class Line {
  var text = ""
}

var drawers = Drawers<Line>()
drawers.register("alarm", as: Notice.self) { notice, line, animation in
  line.text = "! \(notice.text)" + (animation.map { " (\($0))" } ?? "")
}
drawers.register(nil, as: Notice.self) { notice, line, _ in line.text = notice.text }
let client = Client()
try await client.push(Notice(id: 1, text: "Door open"), to: "inbox")
for try await update in client.watch("inbox", as: Notice.self) {
  for row in update.rows {
    let line = Line()
    try drawers.draw(row, into: line, animation: update.animation)
    print(line.text)
  }
}
