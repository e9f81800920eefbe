"""What there is to load: one card a dataset, and the files each needs. No torch here."""

from dataclasses import dataclass, field

from mario.errors import MarioError
from mario.graphs.rules import SETTINGS, SHIFTS, choose

# The first sentence is what `load_dataset` warns with.
WEBKB_FAULT = (
    "GOOD-WebKB is faulty at its source: its Cornell pages are Texas pages, and Wisconsin numbers classes otherwise. "
    "Cornell's and Texas's feature files are byte-identical (183 pages, words and labels, on Cornell's links), and "
    "class ids are numbered per university. Covariate shift therefore trains on two copies of Texas, leaks twins into "
    "id_test and tests on permuted labels. It is kept as published for the paper's tables; `webkb` is the sound data."
)
_TWITCH_NOTE = (
    "The known files are MUSAE's raw graphs with 128 truncated-SVD components of their 3,170 binary features; two "
    "duplicate rows of FR are gone, so 34,118 nodes and 892,344 edges where the paper has 34,120 and 892,346. PyG "
    "downloads other 128 columns, whose checksums are not known here."
)


@dataclass(frozen=True)
class RawFile:
    """A file as published: its place under a data folder, and its size and SHA-256 where they are known."""

    path: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetCard:
    """What a person wants to know about a dataset before loading it.

    ``domains`` has the default first. ``parts`` are the subgraphs that stand side by side, in sorted order: each is a
    domain. ``setting`` is the default one. ``layouts`` are other folders that may hold the files, all in one.
    A set of ``graphs`` is of level graph: its labels and masks have a row a graph. What has ``cached`` bytes is made in
    the user's cache at its first use, and read from there.
    """

    name: str
    what: str
    nodes: int
    edges: int
    features: int
    classes: int
    domains: tuple[str, ...]
    source: str
    license: str
    metric: str = "accuracy"
    parts: tuple[str, ...] = ()
    files: tuple[RawFile, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    shifts: tuple[str, ...] = field(default=SHIFTS)
    setting: str = "transductive"
    layouts: tuple[str, ...] = ()
    level: str = "node"
    graphs: int = 1
    cached: int = 0

    @property
    def default_shift(self) -> str:
        """Concept shift where there is one."""
        return "concept" if "concept" in self.shifts else self.shifts[0]


_GEOM_GCN = (
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_0.npz",
        704,
        "14022a1e19ec7fc0a07a2c06a785a2f9dc52809dbcd1c14fc318f7800675d73f",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_1.npz",
        700,
        "5568fa27e968a724c92211bf97026a36a08893cf94b218043e49b4c973c35cfb",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_2.npz",
        695,
        "763fc1f423395e4172617fa5b6bc0d7adad2241e5fedd1a4f0a098a67f9dc8e9",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_3.npz",
        701,
        "4334321cd9ec42de9d51107fb9a6dc310512e0921bc1cff0f390301ee37315fa",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_4.npz",
        759,
        "2b6b3ef396f4dc7fcdc276fb16b88bb87409b25879dd672b3a506eca844dd8d7",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_5.npz",
        754,
        "1a40ef8b20aa9e1aa850e1abdaba3efac1f66c98ef2c6a59eadefa21136ece6b",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_6.npz",
        758,
        "bcddf4ab59eae4c7d47b8a6cec9025a54ec0e6d3f3bdcd7678e201f25ace4642",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_7.npz",
        693,
        "2b497e12dfc123d7e7c9bb4fc4a82b5bee18409e109a3e3a04da439cacec964d",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_8.npz",
        701,
        "5c4e110d252d7ad156b2e4cd34b6dbd1cecbcc1755f8d72e932cc2a54f2b643c",
    ),
    RawFile(
        "WebKB/cornell/raw/cornell_split_0.6_0.2_9.npz",
        704,
        "80f1531807194d301affbf6f879a4ab4f56a19bdccb62d192e3ecd1b5275f052",
    ),
    RawFile(
        "WebKB/cornell/raw/out1_graph_edges.txt",
        2001,
        "c4522a00cc40873c8a04a3a07c49e24a48a507eb284ac9c9f2d3e0590351bbb7",
    ),
    RawFile(
        "WebKB/cornell/raw/out1_node_feature_label.txt",
        624308,
        "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
    ),
    RawFile(
        "WebKB/texas/raw/out1_graph_edges.txt", 2172, "0fe85183243a78cbee9b85a684f8240963d04d1020d10e9cd2b8cfb25e33b476"
    ),
    RawFile(
        "WebKB/texas/raw/out1_node_feature_label.txt",
        624308,
        "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_0.npz",
        698,
        "7ba77bf7a8856fcc0ab15623a611b8cdce994e820f577da914123fb4f45272b0",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_1.npz",
        701,
        "21cc244a96e3c51ad7993afb4dd227f90e467d82b964bb42d7d9fc500a6ef87f",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_2.npz",
        756,
        "b9e96a699ccf3a4c31ffbd03e52b25570889833425d20fa44e06c37b327cf61e",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_3.npz",
        759,
        "1a7deeb1285009789d5e6045d7e39f7d019c9223d9a75a2b7ce5e26d33b51f63",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_4.npz",
        702,
        "b5419ff3fe31adcae66fdb085d4f47d0b188e9436ab59f438632af969aafc674",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_5.npz",
        691,
        "68405fd1b9ff6105d99717220ecbd198785e338bf4a73abee722bbc9703d2667",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_6.npz",
        756,
        "8ad78b973164e70e5ac0d282e79adcbc6006e373909fbdfd72a13131e09040b8",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_7.npz",
        693,
        "a84bcbf997365bddf5fdf72ed49dc7e435e475f8c6210f8cdee7c8581a2bd6df",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_8.npz",
        762,
        "65ba65f296f91d40d2d7d3c9369b67415094a7e254c6eee48cd6d6531c586fdf",
    ),
    RawFile(
        "WebKB/texas/raw/texas_split_0.6_0.2_9.npz",
        693,
        "4306981d654ad8835c000c1f73fb6c1e60dfe99e26c13a6073f3b0f4cc3ce6ee",
    ),
    RawFile(
        "WebKB/wisconsin/raw/out1_graph_edges.txt",
        3606,
        "ebd213511c88fce1eda450c2f920600c4b8cbb38f02384856bcc47c6ec1807ae",
    ),
    RawFile(
        "WebKB/wisconsin/raw/out1_node_feature_label.txt",
        856324,
        "a32b0aa38d42f0d36841e8a8cb646d197f0ff33a182ac75a2b4476aeed3c7e4b",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_0.npz",
        805,
        "f66f641e191d35d491cd3b63d6c2cd93c4b436da398984b44c19a8d4d7e7b1a5",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_1.npz",
        739,
        "534aeb97266bd5a85a8587adf8eebad3f2e001c1240610f24b62c0ad0c2466ee",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_2.npz",
        747,
        "047a5b641778ec3a4c76055fd7f18ecb2424c0952f20dfff7e1b17749d8acbdd",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_3.npz",
        810,
        "706c27b4c51d046c0316f1e915f093e4a1fff48b3436b3e7c421eab596a99e77",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_4.npz",
        812,
        "7ee813605eec086457aaff022cf3837f2f893fcf8bd37e3a8d2ff0c80e4c4f87",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_5.npz",
        749,
        "8094ac2bdaf2cbea8f7a48df66a0800c809b2fd5942740e6b0441b660d3a0dd5",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_6.npz",
        735,
        "c423a8deea9b18f9ecb6cfd703578e2159df167de01fe7e6195b88995010252d",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_7.npz",
        733,
        "57ad808c8d4dd94dc4404124370bbcebb3dcc597c2bea6457bf05f220adf1527",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_8.npz",
        741,
        "27d4d62a2a6aea2cdc399302237512ab0d64fb0c84e648112f97c5896274e42f",
    ),
    RawFile(
        "WebKB/wisconsin/raw/wisconsin_split_0.6_0.2_9.npz",
        744,
        "3c149cd124a19021031609e0d7743a7be59aae4f88c8d38410138e8f06f5daaf",
    ),
)
_LINQS = (
    RawFile("WebKB-LINQS/cornell.cites", 30824, "9b553733f8621bde1e149b2570da31701d6c41ac1263a4d1e94bc9fd08054a13"),
    RawFile("WebKB-LINQS/cornell.content", 676692, "28d1a6593981e47859965341735b2b9e1b42ea96502dad3c0857b3bf8967e960"),
    RawFile("WebKB-LINQS/texas.cites", 24174, "c7b6cc42170870e4470dafd9ad9330422d42ae2a1f3a746aba93039dc8b41710"),
    RawFile("WebKB-LINQS/texas.content", 645878, "b56017ff6e0097218f238c6dafa5265e0bbe70c0cae39b3a5a4d862611d36b98"),
    RawFile("WebKB-LINQS/washington.cites", 40624, "7aa0e59b0dcba44f63fe2248671bb4c551e7322ecb512284732a08a968759223"),
    RawFile(
        "WebKB-LINQS/washington.content", 796102, "89a63171f394529849da1319b3d55426582c04dc9cdb196c29c5335931269e60"
    ),
    RawFile("WebKB-LINQS/wisconsin.cites", 41900, "f5b60f45a277d93f4e883d8845b4e81fda632818ba0fe8ab8d118d9d2a9e9c73"),
    RawFile(
        "WebKB-LINQS/wisconsin.content", 915830, "bca4574c8f77db5bda3ad9fc734f67ea87b06c43e239b9bb77725ea58d0315d6"
    ),
)
_TWITCH = (
    RawFile("Twitch/DE/raw/DE.npz", 5506207, "e5fc6d1c7a2d1a10e12236f7ee00e5b2d5a85a24210a16422999ae197abf3e0d"),
    RawFile("Twitch/EN/raw/EN.npz", 3661900, "276d5b785674c7b869f04a29d0907a2844e9777bd03b82f47b3b18fa7331cfbd"),
    RawFile("Twitch/ES/raw/ES.npz", 2589454, "df39f6f30b5025842d7126164d453ff5b821a242da85b3b9687e8519e2147526"),
    RawFile("Twitch/FR/raw/FR.npz", 3821449, "0fed096d9f7e02baf8904d7671df4d514bcd2f680092d053bcb302a434977109"),
    RawFile("Twitch/PT/raw/PT.npz", 1087525, "c0fcc973a136cddf005e386ae8b79acde71fb0a19da5569468a1cc85616691d8"),
    RawFile("Twitch/RU/raw/RU.npz", 2335381, "442d94ba7a439e6f83b290510a69bfea8772fc2cdeb910ee85920020650bf5a8"),
)
_COAUTHOR = (
    RawFile(
        "Coauthor/CS/raw/ms_academic_cs.npz",
        2633158,
        "7bbda0ec297bb44efc712cc59f9e9a6c9ac959e5c4848e311bc7e011b0be5753",
    ),
)
_PHOTO = (
    RawFile(
        "Amazon/Photo/raw/amazon_electronics_photo.npz",
        1768890,
        "616582b757950a34e573543c4d3c02e1087c11d5ad3b324aa1b0ddb95db1c99d",
    ),
)
_ELLIPTIC = (
    RawFile("EllipticBitcoin/raw/elliptic_txs_features.csv"),
    RawFile("EllipticBitcoin/raw/elliptic_txs_edgelist.csv"),
    RawFile("EllipticBitcoin/raw/elliptic_txs_classes.csv"),
)
_PROTEINS = (
    RawFile(
        "TUDataset/PROTEINS/raw/PROTEINS_A.txt",
        2022990,
        "cd1ad9e2e230efa057c2d7f67ce9958e8b7088cff08a8db1603922c93bf2e849",
    ),
    RawFile(
        "TUDataset/PROTEINS/raw/PROTEINS_graph_indicator.txt",
        169673,
        "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
    ),
    RawFile(
        "TUDataset/PROTEINS/raw/PROTEINS_graph_labels.txt",
        2226,
        "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
    ),
    RawFile(
        "TUDataset/PROTEINS/raw/PROTEINS_node_labels.txt",
        86942,
        "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
    ),
)
_DD = (
    RawFile("TUDataset/DD/raw/DD_A.txt", 24153822, "24c50078f3af2e2b1c5839901ef446c4604d5c980fb1aba91b4a5542c6efbf48"),
    RawFile(
        "TUDataset/DD/raw/DD_graph_indicator.txt",
        1319775,
        "95aabe75f6537326a14e4efc0d006854c20769f3cfc4877b862803d21c51aff2",
    ),
    RawFile(
        "TUDataset/DD/raw/DD_graph_labels.txt", 2356, "b9df6495feb673f79dea357cca30e08f8602e52d978c77b53ec2552d1cb2ab4e"
    ),
    RawFile(
        "TUDataset/DD/raw/DD_node_labels.txt",
        853624,
        "b0d10b05702c2d655d691b5a6f5585081993860013eeab801572202df1c5c108",
    ),
)
_TU = "https://www.chrsmrrs.com/graphkerneldatasets (PyG TUDataset; Morris et al. 2020)"
_BYTES_A_NODE = 4 * 128 + 10 * 16 + 4 * 8 + 6  # features, edges, row starts, labels and domains, masks
_SHIFTING_NOTES = (
    "split_seed draws all of it: graph, features and split. It is made in the user's cache at first use.",
    "The class shows faintly in 112 columns and in who links to whom, everywhere; a cue in 16 columns agrees with it "
    "in the six training domains (0.8 to 1.0), seldom in ood_val (0.3) and by chance in ood_test.",
    "Three labels a class at any size; under the inductive setting all nodes of the training domains are visible.",
)
_NO_VALIDATION = "Node labels, one-hot, are the features; there is no validation set, so the last checkpoint counts."


def _shifting(name: str, nodes: int) -> DatasetCard:
    return DatasetCard(
        name=name,
        what=f"our own: {nodes:,} nodes with a weak signal that holds everywhere and a strong cue that does not",
        nodes=nodes,
        edges=10 * nodes,
        features=128,
        classes=10,
        domains=("domain",),
        source="generated (mario.graphs.shifting; degree-corrected planted partition of Karrer & Newman 2011)",
        license="none needed",
        notes=_SHIFTING_NOTES,
        shifts=("concept",),
        cached=_BYTES_A_NODE * nodes,
    )


_CARDS = (
    DatasetCard(
        name="good-cbas",
        what="BA-Shapes, colored: a random graph with 80 houses hung on it; which part of a house is a node?",
        nodes=700,
        edges=3962,
        features=4,
        classes=4,
        domains=("color",),
        source="generated (Ying et al., NeurIPS 2019; Gui et al., NeurIPS 2022)",
        license="none needed",
        notes=("The graph is fixed; split_seed draws the split and the colors.",),
    ),
    DatasetCard(
        name="good-webkb",
        what="web pages of three universities and their links, as in GOOD and the paper",
        nodes=617,
        edges=1138,
        features=1703,
        classes=5,
        domains=("university",),
        parts=("cornell", "texas", "wisconsin"),
        files=_GEOM_GCN,
        source="https://github.com/graphdml-uiuc-jlu/geom-gcn (PyG WebKB)",
        license="not stated",
        faults=(WEBKB_FAULT,),
        notes=("Covariate shift holds wisconsin out.",),
    ),
    DatasetCard(
        name="good-twitch",
        what="Twitch streamers of six languages and their friendships; does a user stream mature content?",
        nodes=34118,
        edges=892344,
        features=128,
        classes=2,
        domains=("language",),
        metric="roc_auc",
        parts=("DE", "EN", "ES", "FR", "PT", "RU"),
        files=_TWITCH,
        source="https://graphmining.ai/datasets/ptg/twitch (PyG Twitch; Rozemberczki et al. 2021)",
        license="not stated",
        notes=(_TWITCH_NOTE,),
    ),
    DatasetCard(
        name="good-cora",
        what="the full Cora citation network; a paper's topic from its words",
        nodes=19793,
        edges=126842,
        features=8710,
        classes=70,
        domains=("word", "degree"),
        files=(RawFile("CitationFull/cora/raw/cora.npz"),),
        source="https://github.com/abojchevski/graph2gauss (PyG CitationFull; Bojchevski & Günnemann 2018)",
        license="not stated",
        notes=("The file's checksum is not known here: it could not be had offline.",),
    ),
    DatasetCard(
        name="webkb",
        what="the sound WebKB: web pages of four universities and their links, one numbering of classes. Recommended",
        nodes=877,
        edges=1608,
        features=1703,
        classes=5,
        domains=("university", "cornell", "texas", "washington", "wisconsin"),
        parts=("cornell", "texas", "washington", "wisconsin"),
        files=_LINQS,
        source="https://linqs-data.soe.ucsc.edu/public/lbc/WebKB.tgz (Lu & Getoor, ICML 2003)",
        license="not stated",
        notes=(
            "Covariate shift holds one university out: the one that domain names, wisconsin for domain university.",
            "Classes: 0 course, 1 faculty, 2 project, 3 staff, 4 student.",
            "Edges run from the linking page to the linked one.",
        ),
    ),
    DatasetCard(
        name="coauthor-cs",
        what="computer scientists who wrote papers together; an author's field from the papers' keywords",
        nodes=18333,
        edges=163788,
        features=6805,
        classes=15,
        domains=("word", "degree"),
        files=_COAUTHOR,
        source="https://github.com/shchur/gnn-benchmark (PyG Coauthor; Shchur et al. 2018)",
        license="not stated",
        notes=(
            "A real graph of GOOD-Cora's size and kind, split by GOOD-Cora's numbers.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
    ),
    DatasetCard(
        name="amazon-photo",
        what="products bought together, in ten environments whose labels and cues random networks made, as EERM does",
        nodes=76500,
        edges=2381620,
        features=755,
        classes=10,
        domains=("environment",),
        files=_PHOTO,
        source="https://github.com/shchur/gnn-benchmark (PyG Amazon; Shchur et al. 2018; Wu et al., ICLR 2022)",
        license="not stated",
        notes=(
            "Ten times the same 7,650 nodes and 238,162 edges side by side: one trains, one validates, T1 to T8 test.",
            "split_seed draws the networks. Their labels are uneven: over split seeds 0 to 19 the largest class has 42 "
            "to 99 % of the nodes, and up to half of the ten classes have none.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
        shifts=("concept",),
        setting="inductive",
    ),
    DatasetCard(
        name="elliptic",
        what="Bitcoin transactions and payments in 49 snapshots; is a transaction illicit?",
        nodes=203769,
        edges=234355,
        features=165,
        classes=2,
        domains=("time",),
        metric="f1",
        files=_ELLIPTIC,
        source="https://www.kaggle.com/datasets/ellipticco/elliptic-data-set (PyG EllipticBitcoinDataset; Weber 2019)",
        license="see its Kaggle page",
        notes=(
            "Snapshots 7 to 11 train, 12 to 16 validate, 17 to 49 test in nine groups of four (T9 is snapshot 49).",
            "A fifth of the nodes has a label, 1 illicit or 0 licit; the others are -1 and in no mask.",
            "The files' checksums are not known here: they could not be had offline.",
        ),
        shifts=("label",),
        setting="inductive",
        layouts=("elliptic_bitcoin_dataset", "elliptic", "raw", ""),
    ),
    DatasetCard(
        name="proteins-25",
        what="1,113 proteins as graphs; is one an enzyme? Trains on small ones",
        nodes=43471,
        edges=162088,
        features=3,
        classes=2,
        domains=("size",),
        files=_PROTEINS,
        source=_TU,
        license="not stated",
        notes=(
            "Trains on 500 of the 548 graphs of 4 to 25 nodes, which split_seed draws, and tests on the other 613.",
            _NO_VALIDATION,
        ),
        shifts=("covariate",),
        setting="inductive",
        level="graph",
        graphs=1113,
    ),
    DatasetCard(
        name="dd-200",
        what="1,178 larger proteins as graphs (D&D); is one an enzyme? Trains on those of up to 200 nodes",
        nodes=334925,
        edges=1686092,
        features=89,
        classes=2,
        domains=("size",),
        files=_DD,
        source=_TU,
        license="not stated",
        notes=(
            "Trains on all 462 graphs of 30 to 200 nodes and tests on the other 716, of 201 to 5,748; split_seed draws "
            "nothing.",
            _NO_VALIDATION,
        ),
        shifts=("covariate",),
        setting="inductive",
        level="graph",
        graphs=1178,
    ),
    DatasetCard(
        name="dd-300",
        what="1,178 larger proteins as graphs (D&D); is one an enzyme? Trains on those of up to 300 nodes",
        nodes=334925,
        edges=1686092,
        features=89,
        classes=2,
        domains=("size",),
        files=_DD,
        source=_TU,
        license="not stated",
        notes=(
            "Trains on 500 of the 740 graphs of 30 to 300 nodes, which split_seed draws, and tests on the other 678.",
            "The paper's table says 400 training graphs and its text 500; only 500 adds up to 1,178.",
            _NO_VALIDATION,
        ),
        shifts=("covariate",),
        setting="inductive",
        level="graph",
        graphs=1178,
    ),
    _shifting("shifting-10k", 10_000),
    _shifting("shifting-100k", 100_000),
    _shifting("shifting-1m", 1_000_000),
)

CATALOG: dict[str, DatasetCard] = {card.name: card for card in _CARDS}


def find_card(name: str) -> DatasetCard:
    """The card of a dataset; `MarioError` for a name that there is none of."""
    if isinstance(name, str) and name not in CATALOG and ("/" in name or "." in name):
        raise MarioError(
            f"unknown dataset {name!r}: a file of your own is read by mario.graphs.load_graph and given to fit, see "
            "docs/data.md; `mario data list` has the names"
        )
    return CATALOG[choose("dataset", name, tuple(CATALOG))]


def find_case(
    name: str, domain: str | None = None, shift: str | None = None, setting: str | None = None
) -> tuple[DatasetCard, str, str, str]:
    """The card, domain, shift and setting; what is not told is the dataset's own, and `MarioError` what it has not."""
    card = find_card(name)
    domain = card.domains[0] if domain is None else choose(f"domain of {name}", domain, card.domains)
    shift = card.default_shift if shift is None else choose(f"shift of {name}", shift, card.shifts)
    setting = card.setting if setting is None else choose("setting", setting, SETTINGS)
    if domain in card.parts and shift != "covariate":
        raise MarioError(
            f"domain {domain!r} holds {domain} out, which is covariate shift; {shift} takes domain {card.domains[0]!r}"
        )
    return card, domain, shift, setting
