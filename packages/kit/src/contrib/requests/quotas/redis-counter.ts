import type { Clock } from '../../../db/clock.ts';
import type { Database } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import { Outage } from '../../../throttle/outage.ts';
import { redisScript, sendToRedis } from '../../../throttle/redis-client.ts';
import { DelayedWrite } from '../../../work/delayed-write.ts';
import type { RedisQuotas } from '../options.ts';
import type { QuotaCounter } from './quota-counter.ts';
import { takeRequest, type QuotaCount, type QuotaRow, type Taken } from './quota-store.ts';
import { addCounted, beginCount, takeBack, type CountParts, type RedisCount } from './redis-count-store.ts';

/** What Redis counted is written to the database this often. */
const WRITE_AFTER_MS = 1000;
/** A count stays in Redis this long after its period, for the recording that reads the last requests from there. */
const KEPT_MS = 7 * 86_400_000;

// A count is a hash: `n` requests that Redis counted, `b` that the database counted while Redis did not answer. Redis runs a script alone, so checking and
// counting is one step for all keys of a request.
const TAKE = `
for place, key in ipairs(KEYS) do
  local count = redis.call('HMGET', key, 'n', 'b')
  if not count[1] or not count[2] then return { 'unknown', tostring(place - 1) } end
  if ARGV[place] ~= '' and tonumber(count[1]) + tonumber(count[2]) >= tonumber(ARGV[place]) then return { 'used up', tostring(place - 1) } end
end
local reply = { 'taken' }
for _, key in ipairs(KEYS) do
  redis.call('HINCRBY', key, 'n', 1)
  for _, part in ipairs(redis.call('HMGET', key, 'n', 'b')) do reply[#reply + 1] = part end
end
return reply
`;

// What Redis counted only grows. What the database counted is as it was last told: answers that come late make it smaller, and whoever sees another number than
// the database has tells it again.
const TELL = `
local known = redis.call('HGET', KEYS[1], 'n')
if not known or tonumber(known) < tonumber(ARGV[1]) then redis.call('HSET', KEYS[1], 'n', ARGV[1]) end
redis.call('HSET', KEYS[1], 'b', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`;

interface Answered {
  readonly outcome: 'taken';
  readonly parts: readonly { readonly counted: number; readonly direct: number }[];
}

type Reply = Answered | { readonly outcome: 'unknown' | 'used up'; readonly place: number };

/** What this process saw of a count in Redis and has not written yet. */
interface Seen {
  readonly count: QuotaCount;
  readonly counted: number;
  /** As Redis has it; null: unknown. */
  readonly direct: number | null;
}

interface CounterSurroundings {
  readonly clock: Clock;
  readonly log: DbLog;
}

/**
 * Counts in Redis, and writes the counts to the database each second, which continues while Redis does not answer. The database has every period from its first
 * request on, so what Redis loses is at most what was counted since the last write.
 */
export class RedisCounter implements QuotaCounter {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #log: DbLog;
  readonly #client: RedisQuotas['client'];
  readonly #prefix: string;
  readonly #outage: Outage;
  readonly #take: ReturnType<typeof redisScript>;
  readonly #tellRedis: ReturnType<typeof redisScript>;
  // One for each key, owner and tenant that called within a second: there are as many as rows.
  #seen = new Map<string, Seen>();
  readonly #pending = new Set<Promise<void>>();
  readonly #delayed = new DelayedWrite(WRITE_AFTER_MS, () => this.#write());

  constructor(db: Database, { client, prefix = 'kit:quotas:', timeoutMs = 500 }: RedisQuotas, { clock, log }: CounterSurroundings) {
    this.#db = db;
    this.#clock = clock;
    this.#log = log;
    this.#client = client;
    this.#prefix = prefix;
    this.#outage = new Outage(timeoutMs, { storage: 'redis', what: 'counter of quotas', meanwhile: 'the database counts until it does.' });
    this.#outage.log = log;
    this.#take = redisScript(client, TAKE);
    this.#tellRedis = redisScript(client, TELL);
  }

  async take(counts: readonly QuotaCount[]): Promise<Taken> {
    // Each count may be unknown once; a server that forgets them faster does not count.
    for (let tries = 0; tries <= counts.length; tries += 1) {
      const answer = await this.#outage.attempt(
        () => this.#ask(counts),
        (late) => this.#cameLate(counts, late),
      );
      if (answer === undefined) break;
      const reply = answer.value;
      if (reply.outcome === 'used up') return { usedUp: reply.place };
      if (reply.outcome === 'taken') return { used: this.#sawAll(counts, reply.parts) };
      if (!(await this.#begin(counts[reply.place] as QuotaCount))) break;
    }
    const taken = await takeRequest(this.#db, counts);
    // The next write finds what Redis has to be told.
    if ('used' in taken) for (const count of counts) this.#saw({ count, counted: 0, direct: null });
    return taken;
  }

  async current(rows: readonly QuotaRow[]): Promise<readonly QuotaRow[]> {
    const counted = (await this.#countedOf(rows.map(({ id }) => id))) ?? new Map<string, number>();
    return rows.map((row) => {
      const known = Math.max(counted.get(row.id) ?? 0, this.#seen.get(row.id)?.counted ?? 0);
      return { ...row, used: Number(row.used) + Math.max(0, known - Number(row.counted_in_redis)) };
    });
  }

  async settle(ids: readonly string[]): Promise<void> {
    const counted = await this.#countedOf(ids);
    if (counted === undefined) throw new Error('Redis does not answer, and has the last requests of the periods that are over.');
    await addCounted(
      this.#db,
      [...counted].map(([id, number]): RedisCount => ({ id, counted: number })),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#pending);
    await this.#delayed.stop();
  }

  /** What Redis counted, of those that it knows; undefined while it does not answer. */
  async #countedOf(ids: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> {
    const read = (id: string): Promise<unknown> => sendToRedis(this.#client, ['HGET', this.#prefix + id, 'n']);
    const answer = await this.#outage.attempt(() => Promise.all(ids.map(read)));
    if (answer === undefined) return undefined;
    return new Map(
      answer.value.flatMap((counted, place): [string, number][] => (counted === null ? [] : [[ids[place] ?? '', Number(counted)]])),
    );
  }

  async #ask(counts: readonly QuotaCount[]): Promise<Reply> {
    const keys = counts.map(({ id }) => this.#prefix + id);
    const reply = await this.#take(
      keys,
      counts.map(({ period }) => period.quota.count ?? ''),
    );
    if (!Array.isArray(reply)) throw new TypeError('Redis answered the script of quotas with something other than a list.');
    const [outcome, ...rest] = reply.map(String);
    if (outcome !== 'taken') return { outcome: outcome === 'unknown' ? 'unknown' : 'used up', place: Number(rest[0]) };
    const parts = counts.map((_, place) => ({ counted: Number(rest[2 * place]), direct: Number(rest[2 * place + 1]) }));
    return { outcome: 'taken', parts };
  }

  /** The count as the database has it, for Redis. False: Redis does not answer. */
  async #begin(count: QuotaCount): Promise<boolean> {
    const parts = await beginCount(this.#db, count, this.#seen.get(count.id)?.counted ?? 0);
    return this.#tell(count, parts);
  }

  async #tell({ id, period }: QuotaCount, { counted, direct }: CountParts): Promise<boolean> {
    const keptMs = Math.max(0, period.until.getTime() - this.#clock.now().getTime()) + KEPT_MS;
    return (await this.#outage.attempt(() => this.#tellRedis([this.#prefix + id], [counted, direct, keptMs]))) !== undefined;
  }

  #sawAll(counts: readonly QuotaCount[], parts: Answered['parts']): readonly number[] {
    return counts.map((count, place) => {
      const { counted, direct } = parts[place] as Answered['parts'][number];
      this.#saw({ count, counted, direct });
      return counted + direct;
    });
  }

  #saw(seen: Seen): void {
    const { id } = seen.count;
    this.#seen.set(id, { ...seen, counted: Math.max(seen.counted, this.#seen.get(id)?.counted ?? 0) });
    this.#delayed.schedule();
  }

  /** Redis counted a request that the database has counted meanwhile. */
  #cameLate(counts: readonly QuotaCount[], reply: Reply): void {
    if (reply.outcome !== 'taken') return;
    this.#sawAll(counts, reply.parts);
    const correcting = takeBack(this.#db, counts)
      .catch((error: unknown) => this.#log.warn({ err: error }, 'a request was counted twice against its quotas'))
      .finally(() => this.#pending.delete(correcting));
    this.#pending.add(correcting);
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const writing = [...this.#seen.values()];
    this.#seen = new Map();
    if (writing.length === 0) return;
    try {
      const found = await addCounted(
        this.#db,
        writing.map(({ count: { id, period }, counted }) => ({ id, counted, quota: period.quota.count })),
      );
      const rows = new Map(found.map((row) => [row.id, row]));
      for (const seen of writing) if (!(await this.#agree(seen, rows.get(seen.count.id)))) this.#saw(seen);
    } catch (error) {
      this.#log.warn({ err: error, counts: writing.length }, 'could not write the counts of quotas yet; Redis has them');
      for (const seen of writing) this.#saw(seen);
    }
  }

  /** Tells Redis what it does not have. False: it does not answer. */
  async #agree({ count, counted, direct }: Seen, row: CountParts | undefined): Promise<boolean> {
    if (row === undefined) {
      // Its owner or tenant was erased. The next request begins a new row.
      const removed = await this.#outage.attempt(() => sendToRedis(this.#client, ['DEL', this.#prefix + count.id]));
      return removed !== undefined;
    }
    // More than this process saw there: another one was faster, the database counted during an outage, or Redis went back to an older copy of itself.
    return (row.direct === direct && row.counted <= counted) || this.#tell(count, row);
  }
}
