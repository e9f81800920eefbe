graph [
  node [
    id 0
    label "a"
    size 1.0
  ]
  node [
    id 1
    label "b"
    size 2.0
  ]
  node [
    id 2
    label "c"
    size 3.0
  ]
  edge [
    source 0
    target 1
  ]
  edge [
    source 1
    target 2
  ]
]
