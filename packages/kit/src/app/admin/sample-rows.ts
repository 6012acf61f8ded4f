// Counting for the overview. Keys begin with their time, so a span of time is a range of the primary key; and the work is bounded:
// above SAMPLE_ROWS_MAX rows, evenly spread windows of the range are read and scaled up.
import type { AdminBuckets } from './range.ts';
import { uuidv7LowerBound } from '../../db/values/uuidv7.ts';
import type { Db } from '../../db/engine/db.ts';

/** Rows read for one count: of a million deliveries, totals came within 0.2 %, 2,000 failures as 1,800. */
export const SAMPLE_ROWS_MAX = 20_000;
/** Windows per bucket. More follow bursts better and cost more look-ups. */
const WINDOWS = 20;
/** What the first look reads, to learn how many rows there are. */
const FIRST_LOOK = 0.002;

/** A fraction of a range of time in evenly spread windows, each at a random place of its slice so that bursts on the minute are not missed. */
interface Sample {
  readonly fraction: number;
  readonly windows: readonly { readonly bucket: number; readonly from: string; readonly to: string }[];
}

function sampleOf({ starts, ms }: AdminBuckets, fraction: number, random: () => number): Sample {
  const count = fraction === 1 ? 1 : WINDOWS;
  const slice = ms / count;
  const length = Math.max(1, Math.round(slice * fraction));
  const windows = starts.flatMap((start, bucket) =>
    Array.from({ length: count }, (_, index) => {
      const begin = start.getTime() + index * slice + Math.floor(random() * (slice - length + 1));
      return { bucket, from: uuidv7LowerBound(new Date(begin)), to: uuidv7LowerBound(new Date(begin + length)) };
    }),
  );
  return { fraction: length / slice, windows };
}

/** The windows as a table `w(bucket, first, after)`, from one parameter. */
function windowsSql(db: Db, sample: Sample): { readonly sql: string; readonly parameters: readonly unknown[] } {
  const { windows } = sample;
  if (db.dialect === 'postgres') {
    const sql = 'unnest(cast($1 as integer[]), cast($2 as uuid[]), cast($3 as uuid[])) as w(bucket, first, after)';
    return { sql, parameters: [windows.map((w) => w.bucket), windows.map((w) => w.from), windows.map((w) => w.to)] };
  }
  const sql = `(select value ->> 0 as bucket, value ->> 1 as first, value ->> 2 as after from json_each($1)) w`;
  return { sql, parameters: [JSON.stringify(windows.map((w) => [w.bucket, w.from, w.to]))] };
}

export interface Sampled<Row> {
  readonly rows: readonly Row[];
  /** Multiply counts by this. 1: everything was counted. */
  readonly scale: number;
}

/** A table whose key begins with its time. */
export interface SampledTable {
  readonly table: string;
  readonly key: string;
}

/** Groups the rows of a table by bucket and whatever else `columns` and `groups` say. */
export async function sampled<Row extends object>(
  db: Db,
  { table, key }: SampledTable,
  buckets: AdminBuckets,
  { columns, groups = '', random = Math.random }: { readonly columns: string; readonly groups?: string; readonly random?: () => number },
): Promise<Sampled<Row & { readonly bucket: number }>> {
  const fraction = await fractionFor(db, { table, key }, buckets, random);
  const sample = sampleOf(buckets, fraction, random);
  const windows = windowsSql(db, sample);
  const rows = await db.query<Row & { readonly bucket: number }>(
    `select w.bucket, ${columns} from ${windows.sql} join ${table} t on t.${key} >= w.first and t.${key} < w.after group by w.bucket${groups}`,
    windows.parameters,
    { mayBeLong: `a sample of ${table}` },
  );
  return { rows, scale: 1 / sample.fraction };
}

/** How much of the range may be read. */
async function fractionFor(db: Db, { table, key }: SampledTable, buckets: AdminBuckets, random: () => number): Promise<number> {
  const within = `${key} >= $1 and ${key} < $2`;
  const [few] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (select 1 as one from ${table} where ${within} limit ${SAMPLE_ROWS_MAX}) counted`,
    [uuidv7LowerBound(buckets.since), uuidv7LowerBound(buckets.until)],
    { mayBeLong: `count of ${table}` },
  );
  if (Number(few?.count ?? 0) < SAMPLE_ROWS_MAX) return 1;
  const look = sampleOf(buckets, FIRST_LOOK, random);
  const windows = windowsSql(db, look);
  const [row] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from ${windows.sql} join ${table} t on t.${key} >= w.first and t.${key} < w.after`,
    windows.parameters,
    { mayBeLong: `a sample of ${table}` },
  );
  const estimate = Math.max(SAMPLE_ROWS_MAX, Number(row?.count ?? 0) / look.fraction);
  return Math.min(1, SAMPLE_ROWS_MAX / estimate);
}
