/** The bounds of contract and documentation (docs/reference/crud.md); reaching one is a 4xx that names it. */
export const limits = Object.freeze({
  page: 50,
  pageMax: 1_000,
  offset: 10_000,
  /** Filters in one request. */
  filters: 30,
  /** Values of `in` and `nin`. */
  listValues: 100,
  whereDepth: 5,
  whereLeaves: 50,
  searchLength: 200,
  searchWords: 10,
  orderingColumns: 3,
  expandDepth: 3,
  expandPaths: 10,
  /** Rows that one request may read for its expansions: page × limits per parent. */
  expandRows: 10_000,
  countUpTo: 1_000,
  importBytes: 10 * 1024 * 1024,
  importRows: 10_000,
  importFaults: 50,
  statsGroups: 3,
  statsMetrics: 10,
  statsRows: 1_000,
  exportRows: 1_000_000,
  exportIdleMs: 60_000,
  exportDurationMs: 15 * 60_000,
  /** Compiled statements kept per resource. */
  plans: 1_000,
  /** Distinct permissions that decide what is seen of a resource: 2⁶ plans at most. */
  visibilityPermissions: 6,
  /** Rows of a relation that are written with their parent. */
  nested: 100,
  /** Items of a bulk operation. */
  bulk: 100,
  /** Rows that one soft deletion takes along. */
  cascadeRows: 10_000,
  /** Characters of a text column in an ordering: it travels in the cursor. */
  orderingText: 200,
});
