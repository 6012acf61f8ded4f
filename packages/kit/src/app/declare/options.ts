import type { Logger, LoggerOptions } from 'pino';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { UserSource } from '../../auth/people/user-directory.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database } from '../../db/engine/db.ts';
import type { KeyWrapping } from '../../db/sealing/data-keys.ts';
import type { Registration } from '../../di/registration.ts';
import type { EventHandler } from '../../events/event-handler.ts';
import type { ErrorMap } from '../../errors/error-map.ts';
import type { Mountable } from '../../http/compile/controller.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import type { Deprecation } from '../../http/declare/route.ts';
import type { Permission, Rule } from '../../permissions/permission.ts';
import type { ThrottleStorage } from '../../throttle/storage.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import type { SettingsInput } from './config.ts';
import type { CorsOptions } from './cors.ts';
import type { LoginProvider } from './login-provider.ts';
import type { Module, ResourceDeclaration } from './module.ts';
import type { Seed } from './seed.ts';
import type { TenantSource } from '../tenants/tenant-source.ts';

export type Controllers = Readonly<Record<string /* '/orders' */, Mountable>>;

/** Shown by the compiler where a controller has no path: write `mount: { '/v1': { '/orders': OrderController } }`. No value has this type. */
export interface GiveEachControllerAPath {
  readonly pathIsMissing: never;
}

/** Versions of the API by path: `{ '/v1': { '/orders': OrderController } }`. */
export interface VersionsByPath {
  readonly [path: string]: VersionMount | Controllers | GiveEachControllerAPath;
}

/** A version of the API with its own rules. The short form is just its controllers. */
export interface VersionMount {
  /** Its controllers by path: `{ "/orders": OrderController }`. */
  readonly controllers: Controllers;
  /** Marks all of its routes as deprecated: responses carry `Deprecation`, and `Sunset` where its date is given. */
  readonly deprecated?: boolean | Deprecation;
  /** Turns exceptions of its routes into responses, before the map of the app. */
  readonly errors?: ErrorMap;
  /** Around its routes, within the middleware of the app. */
  readonly middleware?: readonly Middleware[];
  /** Limits of its routes, after those of the app. */
  readonly throttles?: readonly Throttle[];
  /** Added to every route under it. */
  readonly permission?: Permission;
}

export type { MembershipQuestion } from '../tenants/tenant-source.ts';

export interface AppOptions extends TenantSource {
  /** A URL (`sqlite:./data/app.db`, `postgres://…`), an open database, or several by name with one called `default`. Default: DATABASE_URL. */
  readonly database?: string | Database | Readonly<Record<string, string | Database>>;
  /**
   * How old rows may be that a replica shows, in milliseconds: one that is further behind is not read, and neither by whoever wrote so lately. See
   * `readFrom`. Default: 5000.
   */
  readonly replicaLagMsMax?: number;
  /** Where a service such as a KMS encrypts the keys of encrypted columns: DATA_KEYS and DATA_SEARCH_KEYS then contain wrapped keys. */
  readonly keyWrapping?: KeyWrapping;
  /** Modules of the toolkit and plugins: `[accounts(), jobs(), webhooks()]`. Their order does not matter. */
  readonly modules?: readonly Module[];
  /** Controllers by path: `{ "/v1": { "/orders": OrderController } }`. */
  readonly mount: VersionsByPath;
  /** Asked in order, before those of the modules. */
  readonly authenticators?: readonly Authenticator[];
  /** Where users are found by id. Default: those of a module, such as `accounts()`. */
  readonly users?: UserSource;
  /** How people log in with a browser, for the admin site. Default: the `login` of a module such as accounts(). */
  readonly login?: LoginProvider;
  /** Limits of every route, before those of controllers and routes. */
  readonly throttles?: readonly Throttle[];
  /** Where throttles count. Default: the memory of the process; several processes share `sqlStorage()` or `redisStorage()`. */
  readonly throttleStorage?: ThrottleStorage;
  /** How errors of your own classes become responses: `errorMap(…)`. */
  readonly errors?: ErrorMap;
  /** Middleware of every route, from the outside in. */
  readonly middleware?: readonly Middleware[];
  /** Services for handlers and jobs: what `singleton(…)`, `scoped(…)` and `value(…)` return. */
  readonly services?: readonly Registration[];
  /** Handlers of domain events: `on(OrderPaid, handler)`. They run in this order. */
  readonly handlers?: readonly EventHandler[];
  /** Policies of models that have no controller: what `resource(…)` of `kit/crud` returns. */
  readonly resources?: readonly ResourceDeclaration[];
  /** Rows for development and tests: what `seed(…)` returns. `kit seed` runs them. */
  readonly seeds?: readonly Seed[];
  /** Warnings that are right for this app, each with the reason: `{ W008: 'the table has 200 rows' }`. Errors cannot be silenced. */
  readonly silencedChecks?: Readonly<Record<string /* 'W008' */, string>>;
  /** Named rules for `hasRule('name')`. */
  readonly rules?: Readonly<Record<string, Rule>>;
  /** Settings instead of environment variables. */
  readonly settings?: SettingsInput;
  /** A pino logger, or its options. Default: JSON lines on stdout, at the level of `LOG_LEVEL`. */
  readonly log?: LoggerOptions | Logger;
  /** The time. Default: the system clock. */
  readonly clock?: Clock;
  /** Proxies whose X-Forwarded-For is believed: addresses, subnets, `loopback`. Default: the setting TRUSTED_PROXIES, or none. */
  readonly trustedProxies?: readonly string[];
  /** Which pages of other origins may call the API from a browser. Default: none. */
  readonly cors?: CorsOptions;
  /** Default: 1 MiB. A route may set its own. */
  readonly bodyBytesMax?: number;
  /** Levels of nesting in a JSON body. Default: 32. */
  readonly jsonDepthMax?: number;
  /** Members of all objects in a JSON body together. Default: 10,000. */
  readonly jsonMembersMax?: number;
  /** Items of all arrays in a JSON body together. Default: 50,000. */
  readonly jsonItemsMax?: number;
  /** Idempotency records that one caller may have at the same time. Default: 100,000. */
  readonly idempotencyRecordsMax?: number;
  /** Longest a handler may take. Default: no limit. A route may set its own. */
  readonly timeoutMs?: number;
  /** The name of the API in the OpenAPI document. Default: `API`. */
  readonly title?: string;
  /** The version of the API in the OpenAPI document. Default: `0.0.0`. */
  readonly version?: string;
  /** Shown at the top of the OpenAPI document. */
  readonly description?: string;
  /** The reference page at `/docs` with the document at `/openapi.json`, for everyone unless a permission is given. `false` serves neither. */
  readonly docs?:
    | boolean
    | {
        /** Where the page is. Default: `/docs`. */
        readonly path?: `/${string}`;
        /** Who can read the page and the document. Default: everyone. */
        readonly permission?: Permission;
      };
}
