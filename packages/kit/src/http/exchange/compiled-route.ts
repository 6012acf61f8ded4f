import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { ErrorMembers } from '../../errors/catalog.ts';
import type { ErrorMap } from '../../errors/error-map.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import type { AtomicOptions, IdempotencyPlan } from '../declare/idempotent-options.ts';
import type { RawBody } from '../declare/raw.ts';
import type { Deprecation, HttpMethod, Route, ToolFacts } from '../declare/route.ts';
import type { JsonSchema, Schema } from '../declare/schema.ts';

/** A schema with its JSON Schema, converted once at startup: input for what arrives, output for what leaves. */
export interface RouteSchema {
  readonly schema: Schema;
  readonly json: JsonSchema;
}

export interface CompiledResponse {
  readonly description: string | undefined;
  readonly response: RouteSchema | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty: JSON, or the route's own media type. */
  readonly mediaTypes: readonly string[];
}

/** An error a route is known to answer with. */
export interface RaisedError {
  /** The HTTP status. */
  readonly status: number;
  /** The code in the response. */
  readonly code: string;
  /** The public sentence. */
  readonly detail: string;
  /** JSON Schemas of the members that it may carry beside those of all problems. */
  readonly members?: ErrorMembers | undefined;
}

/** What middleware adds to the operations it applies to, for the OpenAPI document. */
export interface MiddlewareDocument {
  /** Headers of the request, by name. */
  readonly headers?: Readonly<Record<string, JsonSchema>>;
  /** Headers of a successful response, each with a sentence. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** Errors that the middleware responds with. */
  readonly raises?: readonly RaisedError[];
}

/** What middleware does to the responses of a route, for `kit inspect`. */
export interface ResponseFacts {
  /** Versions that callers can ask for, the newest first, and what they get otherwise. */
  readonly versions?: {
    /** Versions that callers can ask for, the newest first. */
    readonly supported: readonly string[];
    /** The version of callers that ask for none. */
    readonly default: string;
  };
  /** How long responses are kept, and what drops them sooner. */
  readonly cache?: {
    /** Longest that a response is stored. */
    readonly maxAgeMs: number;
    /** Changes of these drop it sooner. */
    readonly tags: readonly string[];
  };
}

/** One row of the route table: everything about an operation, as data. OpenAPI, `kit inspect` and the documents read it. */
export interface CompiledRoute {
  readonly operationId: string;
  readonly method: HttpMethod;
  /** Whole path in Fastify form: `/v1/orders/:id`. */
  readonly path: string;
  /** The version mount it belongs to: `/v1`. */
  readonly mount: string;
  /** Class name and field of the controller. */
  readonly controller: string;
  readonly field: string;
  readonly kind: 'json' | 'raw' | 'stream';
  /** The last event of the stream is called `end`. */
  readonly ends: boolean;
  /** The media type of a successful answer; undefined when it has no body. */
  readonly mediaType: string | undefined;
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly tags: readonly string[];
  readonly deprecated: boolean | Deprecation;
  readonly hidden: boolean;
  readonly params: RouteSchema | undefined;
  readonly query: RouteSchema | undefined;
  readonly headers: RouteSchema | undefined;
  readonly cookies: RouteSchema | undefined;
  readonly body: RouteSchema | undefined;
  /** Set when the body is not JSON. */
  readonly rawBody: RawBody | undefined;
  readonly response: RouteSchema | undefined;
  /** Of the events for callers that accept `text/event-stream`; undefined where there are none. */
  readonly live?: RouteSchema | undefined;
  readonly status: number;
  /** Answers of other statuses than `status`, and what is documented about each. */
  readonly responses: Readonly<Record<number, CompiledResponse>>;
  /** The controller's and the operation's, combined. */
  readonly permission: Permission;
  readonly scope: string | undefined;
  readonly authenticators: readonly Authenticator[];
  readonly csrf: boolean;
  /** Operation, controller, version mount, app: all of them apply. */
  readonly throttles: readonly Throttle[];
  /** Nearest first. */
  readonly errors: readonly ErrorMap[];
  readonly raises: readonly RaisedError[];
  /** Names, in the order they run. */
  readonly middleware: readonly string[];
  /** What its middleware adds to the OpenAPI document. */
  readonly documents: readonly MiddlewareDocument[];
  /** What its middleware does to responses. */
  readonly responseFacts: ResponseFacts;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
  /** Set when every request runs in one transaction. */
  readonly atomic: AtomicOptions | undefined;
  /** Set when requests may carry an idempotency key. */
  readonly idempotency: IdempotencyPlan | undefined;
  /** A POST that only reads. */
  readonly isRead: boolean;
  /** The replica that its reads go to while it is fresh. */
  readonly readFrom: string | undefined;
  /** Whether and how mcp() offers it; undefined where the route does not say. */
  readonly tool: boolean | ToolFacts | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The header by which requests name the tenant, where the response depends on it. */
  readonly tenantHeader?: string | undefined;
  /** It is reached by who works in a suspended tenant, and acts for none then. */
  readonly isBesideTenants?: boolean | undefined;
  readonly route: Route;
}
