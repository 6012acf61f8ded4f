import { INPUT_LIMITS } from '../../options/input-limits.ts';

/** Bounds of what one request may ask of a controller. Each is an integer of 1 or more; asking for more is a 4xx that names it. */
export interface LimitOptions {
  /** Rows that `offset` may skip. Default: 10,000. */
  readonly offset?: number;
  /** Filters in one request. Default: 30. */
  readonly filters?: number;
  /** Values of one `in` or `nin`. Default: 100. */
  readonly listValues?: number;
  /** Levels of the tree in the body of QUERY. Default: 5. */
  readonly whereDepth?: number;
  /** Conditions in the body of QUERY. Default: 50. */
  readonly whereLeaves?: number;
  /** Characters of `search`. Default: 200. */
  readonly searchLength?: number;
  /** Words of `search`. Default: 10. */
  readonly searchWords?: number;
  /** Columns of `ordering`. Default: 3. */
  readonly orderingColumns?: number;
  /** Relations in one path of `expand`. Default: 3. */
  readonly expandDepth?: number;
  /** Paths of `expand`. Default: 10. */
  readonly expandPaths?: number;
  /** Rows that one request may read for its expansions, page × limits per parent. Default: 10,000. */
  readonly expandRows?: number;
  /** Names of `group_by` of stats. Default: 3. */
  readonly statsGroups?: number;
  /** Metrics of one request for stats. Default: 10. */
  readonly statsMetrics?: number;
  /** Rows of stats. Default: 1,000. */
  readonly statsRows?: number;
  /** Faults that a refused import lists. Default: 50. */
  readonly importErrors?: number;
}

export type ControllerLimits = Readonly<Required<LimitOptions>>;

/** What holds for a controller that says nothing. */
export const usualLimits: ControllerLimits = Object.freeze({
  offset: 10_000,
  filters: 30,
  listValues: 100,
  whereDepth: 5,
  whereLeaves: 50,
  searchLength: 200,
  searchWords: 10,
  orderingColumns: 3,
  expandDepth: 3,
  expandPaths: 10,
  expandRows: 10_000,
  statsGroups: 3,
  statsMetrics: 10,
  statsRows: 1_000,
  importErrors: 50,
});

export function limitsOf(given: LimitOptions | undefined): ControllerLimits {
  if (given === undefined) return usualLimits;
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.freeze({ ...usualLimits, ...(Object.fromEntries(said) as LimitOptions) });
}

/** The other bounds of contract and documentation (docs/reference/crud.md): fixed, or defaults of options of their own. */
export const limits = Object.freeze({
  page: 50,
  pageMax: 1_000,
  /** Of lists with `page` and `page_size`. */
  pageNumberedMax: 100,
  countUpTo: 1_000,
  importBytes: 10 * 1024 * 1024,
  importRows: 10_000,
  /** Columns of a CSV file, members of a JSON line: more than any table has. */
  importColumns: 1_000,
  exportRows: 1_000_000,
  exportIdleMs: INPUT_LIMITS.clientIdleMs,
  exportDurationMs: 15 * 60_000,
  /** Records of a live list when it begins. */
  liveRows: 5_000,
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
  /** Characters of all text columns of one ordering: with a key they are a cursor of 5,000 characters at most. */
  orderingTexts: 600,
  /** Values of all lists of one request. SQLite takes 32,766 in a statement; lists are filled up to a power of two, wide decimals take three. */
  allListValues: 5_000,
});
