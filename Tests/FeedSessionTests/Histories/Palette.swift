/// The definitions of random histories.
enum Palette {
  static let collections = [
    #"{"feed":"c","kind":"collection","type":"$.k","bins":[{"name":"x","filter":"@.v > 2","sort":[{"by":"$.v"}]},{"name":"y"}]}"#,
    #"{"feed":"c","kind":"collection","type":"$.k","bins":[{"name":"y","filter":"@.w == true"},{"name":"x","filter":"@.v > 1","sort":[{"by":"$.v","order":"descending"}]},{"name":"z"}],"exclusive":true}"#,
    #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v > 2","sort":[{"by":"$.w"},{"by":"$.v","order":"descending"}]}],"retain":{"count":5}}"#,
    #"{"feed":"c","kind":"collection","bins":[{"name":"z"},{"name":"y","sort":[{"by":"$.f"}]},{"name":"x","sort":[{"by":"$.v"}]}],"retain":{"seconds":4}}"#,
    #"{"feed":"c","kind":"collection","id":"$.v","bins":[{"name":"y"},{"name":"x","filter":"@.v < 3"}],"retain":{"count":8,"seconds":9}}"#,
  ]
  static let composed = [
    #"{"feed":"h","kind":"composed","children":["c","a","s"]}"#,
    #"{"feed":"h","kind":"composed","children":["s","c"]}"#,
    #"{"feed":"h","kind":"composed","children":["a","c/x","s","c/y"]}"#,
    #"{"feed":"h","kind":"composed","children":[]}"#,
  ]
  static let segmented = [
    #"{"feed":"g","kind":"segmented","children":["a","c","c/y"],"current":1}"#,
    #"{"feed":"g","kind":"segmented","children":["c/y","s","a"],"current":0}"#,
    #"{"feed":"g","kind":"segmented","children":["h","a"],"current":0}"#,
  ]
  static let slots = [
    #"{"feed":"m","kind":"slots","contents":{"A":"a","C":"c/y"},"pattern":["A","A","C"],"repeatables":["A"]}"#,
    #"{"feed":"m","kind":"slots","contents":{"A":"a","C":"c","S":"s"},"pattern":["C","A"],"default":"C","header":["S"],"fixed":{"1":"S"}}"#,
  ]
}
