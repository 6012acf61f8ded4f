import type { Database } from '../db/engine/db.ts';
import { Controller } from '../http/compile/controller.ts';
import { controllerOptions } from '../http/declare/controller-options.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { readOptions } from '../options/read-options.ts';
import { aFunction, milliseconds, recordOf } from '../options/value-rule.ts';

export interface HealthContext {
  /** Aborted at the deadline: pass it on, so that a stuck check stops using what it waits for. */
  readonly signal: AbortSignal;
  readonly databases: Readonly<Record<string, Database>>;
}

/** Resolves when the thing works; throws, or takes too long, when it does not. Returns `{ warning }` when it works, and an operator should know of something. */
export type HealthCheck = (context: HealthContext) => unknown;

export interface HealthOptions {
  /** By name. The databases of the application and their tables are checked without being named. */
  readonly checks?: Readonly<Record<string, HealthCheck>>;
  /** All checks run concurrently and share it. Default: 2000. Give a probe a longer timeout: Kubernetes waits 1 s unless told. */
  readonly deadlineMs?: number;
}

export interface HealthReport {
  readonly status: 'ok' | 'unavailable';
  readonly checks: Readonly<Record<string, { readonly status: 'ok' | 'warning' | 'failed' | 'timeout'; readonly detail?: string }>>;
}

/** What the controller asks of the app it is mounted in. */
interface HealthApp {
  readonly isStopping: boolean;
  readonly healthChecks: Readonly<Record<string, HealthCheck>>;
  readonly stuckDatabases: readonly string[];
}

/** A check's failure with a sentence that everybody may read. `message` is for the log. */
export class NotReady extends Error {
  override readonly name = 'NotReady';
  readonly detail: string;

  constructor(detail: string, message: string = detail) {
    super(message);
    this.detail = detail;
  }
}

const STOPPING: HealthReport = {
  status: 'unavailable',
  checks: { shutdown: { status: 'failed', detail: 'The process is stopping. Send requests to another one.' } },
};

/** Of `GET live`. */
export interface Liveness {
  readonly status: 'ok' | 'stuck';
}

const LIVE: JsonSchema = {
  type: 'object',
  properties: { status: { enum: ['ok', 'stuck'] } },
  required: ['status'],
  additionalProperties: false,
};
const READY: JsonSchema = {
  type: 'object',
  properties: {
    status: { enum: ['ok', 'unavailable'] },
    checks: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: { status: { enum: ['ok', 'warning', 'failed', 'timeout'] }, detail: { type: 'string' } },
        required: ['status'],
        additionalProperties: false,
      },
    },
  },
  required: ['status', 'checks'],
  additionalProperties: false,
};

/** Runs every check against one deadline. A check that ignores the signal is left behind, not waited for. */
export async function runHealthChecks(
  checks: Readonly<Record<string, HealthCheck>>,
  context: Omit<HealthContext, 'signal'>,
  deadlineMs: number,
  onFailure: (name: string, error: unknown) => void = () => {},
): Promise<HealthReport> {
  const aborter = new AbortController();
  const deadline = Promise.withResolvers<HealthReport['checks'][string]>();
  const timer = setTimeout(() => {
    deadline.resolve({ status: 'timeout' });
    aborter.abort(new DOMException('The health check took too long.', 'TimeoutError'));
  }, deadlineMs);
  const run = async (name: string, check: HealthCheck): Promise<HealthReport['checks'][string]> => {
    try {
      const found = await check({ ...context, signal: aborter.signal });
      return isWarning(found) ? { status: 'warning', detail: found.warning } : { status: 'ok' };
    } catch (error) {
      onFailure(name, error);
      return error instanceof NotReady ? { status: 'failed', detail: error.detail } : { status: 'failed' };
    }
  };
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await Promise.race([run(name, check), deadline.promise])] as const),
  );
  clearTimeout(timer);
  return {
    status: results.every(([, { status }]) => status === 'ok' || status === 'warning') ? 'ok' : 'unavailable',
    checks: Object.fromEntries(results),
  };
}

function isWarning(found: unknown): found is { readonly warning: string } {
  return typeof found === 'object' && found !== null && typeof (found as { warning?: unknown }).warning === 'string';
}

/**
 * `GET live` answers as long as the process does, with 503 when no connection of a database has answered for a minute; `GET ready` answers 503 while something it needs does not work.
 * The response names the check that failed; the reason is only logged, because it may name hosts and users.
 */
export class HealthController extends Controller {
  static override readonly tags = ['health'];
  static readonly [controllerOptions] = {};
  readonly #checks: Readonly<Record<string, HealthCheck>>;
  readonly #deadlineMs: number;
  #app: HealthApp | undefined;
  #running: Promise<HealthReport> | undefined;

  constructor(options: HealthOptions = {}) {
    super();
    const { checks = {}, deadlineMs = 2000 } = readOptions('new HealthController()', options, {
      checks: recordOf(aFunction),
      deadlineMs: milliseconds(1),
    });
    this.#checks = checks;
    this.#deadlineMs = deadlineMs;
  }

  install(app: HealthApp): void {
    this.#app = app;
  }

  live = route.get(
    '/live',
    {
      response: jsonSchema<Liveness>(LIVE),
      permission: allowAny,
      auth: [],
      throttled: false,
      summary: 'Liveness probe',
      description: '503 with the same body when only a restart of the process helps.',
    },
    ({ reply, log }): Liveness => {
      const stuck = this.#app?.stuckDatabases ?? [];
      if (stuck.length === 0) return { status: 'ok' };
      log.error(
        { databases: stuck },
        'no connection of the pool has answered for a minute, although new ones can be opened: restart the process',
      );
      reply.code(503);
      return { status: 'stuck' };
    },
  );

  ready = route.get(
    '/ready',
    {
      response: jsonSchema<HealthReport>(READY),
      permission: allowAny,
      auth: [],
      throttled: false,
      summary: 'Readiness probe',
      description: '503 with the same body while a check fails.',
    },
    async ({ databases, reply, log }) => {
      reply.header('cache-control', 'no-store');
      if (this.#app?.isStopping === true) {
        reply.code(503);
        return STOPPING;
      }
      const checks = { ...this.#app?.healthChecks, ...this.#checks };
      // No throttle counts probes: whoever asks while the checks run shares their result, so they cannot be made to cost more.
      const report = await (this.#running ??= runHealthChecks(checks, { databases }, this.#deadlineMs, (name, error) =>
        log.warn({ err: error, check: name }, `health check ${name} failed`),
      ).finally(() => (this.#running = undefined)));
      if (report.status !== 'ok') reply.code(503);
      return report;
    },
  );
}
