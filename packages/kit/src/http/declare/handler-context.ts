import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { ServiceScope } from '../../di/container.ts';
import type { Caller } from './caller.ts';
import type { Log } from '../log.ts';

/** What a handler receives. `User` is never null where the route's permission admits no anonymous caller. */
export interface HandlerContext<
  Params = unknown,
  Query = unknown,
  Headers = unknown,
  Body = unknown,
  U extends User | null = User | null,
  Cookies = unknown,
> {
  readonly params: Params;
  readonly query: Query;
  /** The declared request headers; the raw ones are `request.headers`. */
  readonly headers: Headers;
  /** The declared cookies. */
  readonly cookies: Cookies;
  readonly body: Body;
  readonly user: U;
  readonly principal: null extends U ? Principal | null : Principal;
  /** The app's `default` database; open a transaction with `db.transaction(async (tx) => …)`. */
  readonly db: Database;
  /** The transaction of an atomic route (`atomic: true`); fails on others. */
  readonly tx: Db;
  /** Every database of the app by name. */
  readonly databases: Readonly<Record<string, Database>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly requestId: string;
  /** Aborted when the client goes away or the server stops: pass it to everything that takes long. */
  readonly signal: AbortSignal;
  readonly services: ServiceScope;
  /** Records what the request changes, in its transaction: `audit.record(tx, [entry])`. Actor and request id are filled in. Fails without the audit module. */
  readonly audit: AuditSink;
  readonly client: { readonly address: string };
  /** Settles a permission that needs the object and returns it; throws the denial, and 404 for null and undefined. A route whose permission stays open answers 403 whatever the handler returns. */
  readonly authorize: <T>(object: T) => Promise<NonNullable<T>>;
  /** User, principal and tenant, resolved once per request. */
  readonly caller: () => Promise<Caller<U>>;
  /** The version that the response is of: it becomes its `ETag`. Needs `etag` on the route. */
  readonly etag: (version: string | number) => void;
  /** Compares the current version of the object with `If-Match`: 412 when it is another. Call it before the change, with the row locked. Needs `etag` on the route. */
  readonly ifMatch: (version: string | number) => void;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}
