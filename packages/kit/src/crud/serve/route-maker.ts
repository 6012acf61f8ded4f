import { coreErrors } from '../../errors/core-errors.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { LiveRoute, RouteNews } from '../../http/declare/live-route.ts';
import type { HttpMethod, Route } from '../../http/declare/route.ts';
import type { Schema } from '../../http/declare/schema.ts';
import { USES_TENANT } from '../../http/compile/tenant-header.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import { all, any, type Permission } from '../../permissions/permission.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import { type KeyParameter, keyParams } from '../mount/schemas.ts';
import { hasTenant } from '../policy/has-tenant.ts';
import type { Policy } from '../policy/policy.ts';
import type { AnyResource } from '../declare/resource.ts';
import { scopeRule } from '../declare/scope-rule.ts';
import type { Context } from '../read/list-access.ts';
import { callerSchemas } from './caller-schemas.ts';
import { impliedBy } from '../options/implied-operations.ts';
import { fieldOf } from '../options/operation-field.ts';
import { lazyQuery } from '../mount/lazy-schema.ts';
import type { Operations } from './operations.ts';

/** Facts of a route, and of the operation that it is. */
type OperationFacts = Partial<Route['options']> & {
  /** What it does to each row, where that is another operation: a selection is for callers who may do it to one. */
  readonly each?: string;
  /** It is an action, on one record or on many. */
  readonly of?: 'one' | 'many';
  /** The response is no row, nor made of rows. */
  readonly ofRows?: false;
  /** Its events. */
  readonly live?: LiveRoute | undefined;
  readonly news?: RouteNews | undefined;
};

const LONG_URL_REMEDY = 'Send the conditions in the body: QUERY at the same address, or POST to its /query.';

/** They read many rows, and no write depends on what they show. */
const READ_FROM_REPLICA: ReadonlySet<string> = new Set(['list', 'query', 'queryAlias', 'stats', 'export']);

/** Makes the route of an operation: its permission, scope, idempotency and preconditions come from the options of the controller. */
export class RouteMaker {
  readonly #operations: Operations;
  readonly #options: AnyCrudOptions;
  /** Of routes of one row. */
  readonly params: Schema;

  constructor(operations: Operations) {
    this.#operations = operations;
    this.#options = operations.access.options;
    this.params = lazyQuery(() => {
      const { policy, lookup, parent } = operations.access;
      const parentKey = parent === undefined ? {} : { [parent.param]: keyOf(parent.edge.target) };
      return keyParams({ ...parentKey, id: keyOf(policy, lookup.name) });
    });
  }

  /** Of routes of many rows, below a parent. */
  parentParams(): Schema {
    const operations = this.#operations.access;
    return lazyQuery(() => {
      const { parent } = operations;
      // A parent that is no relation is reported at start-up.
      if (parent === undefined) return keyParams({});
      const { edge, param } = parent;
      return keyParams({ [param]: keyOf(edge.target) });
    });
  }

  *route(
    name: string,
    method: HttpMethod,
    path: string,
    access: 'read' | 'write',
    { each: operation, of, ofRows, live, news, ...facts }: OperationFacts,
    handler: (context: Context) => unknown,
  ): Iterable<[string, Route]> {
    // The alias has the settings of the operation it stands for.
    const settings = name === 'queryAlias' ? 'query' : name;
    const given = this.#options.operations?.[settings];
    const ofEach = operation === undefined ? undefined : this.#options.operations?.[operation];
    if (given === false || ofEach === false) return;
    // The record of keys is in the default database: it cannot be saved together with rows of another.
    const isDefault = this.#operations.access.using === 'default';
    const { permission: added, path: otherPath, raises: addedErrors = [], field: _field, ...more } = given ?? {};
    const { resource: declared } = this.#operations.access;
    const implied = impliedBy(name, this.#options).flatMap((other) => this.#options.operations?.[other] || []);
    const permission = this.#permission(facts.permission, ...implied.map((other) => other.permission), ofEach?.permission, added);
    const raises = [...(facts.raises ?? []), ...(needsTenant(declared) ? [coreErrors.tenant_required] : []), ...addedErrors];
    const options: Route['options'] = {
      ...facts,
      raises,
      ...(READ_FROM_REPLICA.has(name) && this.#options.readFrom !== undefined ? { readFrom: this.#options.readFrom } : {}),
      ...this.#scope(access),
      ...this.#idempotent(method, access),
      ...more,
      permission,
      metadata: {
        ...facts.metadata,
        ...more.metadata,
        ...(this.#options.audience === undefined ? {} : { audience: this.#options.audience }),
        ...(declared.options.tenant === undefined ? {} : USES_TENANT),
        crud: {
          resource: declared.name,
          operation: operation ?? settings,
          ...(of === undefined ? {} : { of }),
          ...(ofRows === undefined ? {} : { ofRows }),
          ...this.#version(settings),
        },
        ...(name === 'list' && this.offersQuery ? { longUrlRemedy: LONG_URL_REMEDY } : {}),
        openapi: {
          'x-kit-crud': { resource: declared.name, operation: settings },
          ...this.#preconditions(method, path.startsWith('/:id'), facts),
        },
      },
    };
    const route: Route = {
      isRoute: true,
      kind: 'answer',
      method,
      path: otherPath ?? path,
      options,
      handler,
      finish: this.#operations.answering.finish,
      tables: this.#operations.access.tables,
      isUnwrapped: true,
      ...(live === undefined ? {} : { live }),
      ...(news === undefined ? {} : { news }),
      schemasFor: (exchange) => callerSchemas(this.#operations.access, settings, exchange as Exchange),
      ...(access === 'read' ? { audience: this.#operations.reading.readAudience } : {}),
      ...(access === 'write' && isDefault
        ? { audience: this.#operations.reading.audience, isAtomicWithKey: true, takesKeys: takesKeys(method) }
        : {}),
      ...(access === 'read' && method === 'POST' ? { isRead: true } : {}),
    };
    yield [fieldOf(this.#options, name), route];
  }

  /** The member of the rows of a page that says which version they have: clients send it back in `If-Match`. */
  #version(name: string): { readonly version?: string } {
    const { version } = this.#operations.access.resource.options;
    return version === undefined || this.#options.etag === false || (name !== 'list' && name !== 'query') ? {} : { version };
  }

  get offersQuery(): boolean {
    return this.#options.queryMethod ?? Object.keys(this.#options.filters ?? {}).length > 0;
  }

  /** Besides the controller's, which is a static: an owner's rows are for those who are known. */
  #permission(...added: readonly (Permission | undefined)[]): Permission {
    const { resource } = this.#operations.access;
    const { owner, anonymous, access, audiences } = resource.options;
    const audience = audiences?.[this.#options.audience ?? ''];
    const unless = scopeRule(resource.options.tenant)?.unless;
    const admitsAnonymous = anonymous !== undefined || access?.admitsAnonymous === true;
    const parts = [
      ...(audience !== undefined || (owner !== undefined && !admitsAnonymous) ? [isAuthenticated as Permission] : []),
      ...(needsTenant(resource) && audience?.tenant !== 'all' ? [unless === undefined ? hasTenant : any(unless, hasTenant)] : []),
      ...added.filter((each) => each !== undefined),
    ];
    const [first = this.#options.permission as Permission, ...more] = parts;
    return more.length === 0 ? first : all(first, ...more);
  }

  /** What a document says about the conditions a request may carry. */
  #preconditions(method: HttpMethod, hasKey: boolean, { responses = {}, raises = [] }: Partial<Route['options']>): object {
    if ((method === 'GET' || method === 'QUERY') && '304' in responses)
      return { requestHeaders: { 'If-None-Match': 'The `ETag` you have: 304 without a body where it is still current.' } };
    // Items of a bulk operation carry their versions themselves.
    if (!hasKey || !raises.includes(coreErrors.precondition_failed)) return {};
    const isRequired = raises.includes(coreErrors.precondition_required);
    return {
      requestHeaders: { 'If-Match': 'The `ETag` of your last read: 412 where the row was changed meanwhile. `*` means: if it is there.' },
      ...(isRequired ? { requiredHeaders: ['If-Match'] } : {}),
    };
  }

  /** What the controller says; without it, keys are honored where callers are always known. */
  #idempotent(method: HttpMethod, access: 'read' | 'write'): Pick<Route['options'], 'idempotent'> {
    const { idempotency } = this.#options;
    if (!takesKeys(method) || access === 'read' || idempotency === undefined) return {};
    // Deleting twice does no harm, so a DELETE without a key is never refused.
    return { idempotent: idempotency === false || method === 'POST' ? idempotency : 'optional' };
  }

  #scope(access: 'read' | 'write'): { readonly scope?: string } {
    const { scope } = this.#options;
    if (scope === undefined) return {};
    return { scope: typeof scope === 'string' ? `${scope}:${access}` : scope[access] };
  }
}

/** Without a tenant there are no rows, and none can be made. */
function needsTenant({ options }: AnyResource): boolean {
  const tenant = scopeRule(options.tenant);
  return tenant !== undefined && tenant.none === undefined;
}

function keyOf(policy: Policy, column = policy.key.name): KeyParameter {
  return { settings: policy.settingsOf(column), missing: policy.missing };
}

function takesKeys(method: HttpMethod): boolean {
  return method === 'POST' || method === 'DELETE';
}
