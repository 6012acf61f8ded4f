import type { Principal, User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ServiceScope } from '../../di/container.ts';
import type { Permission, PermissionContext, Verdict } from '../../permissions/permission.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import type { AccessContext, RowAccess } from '../declare/row-access.ts';
import type { AskedRows } from '../declare/resource.ts';

/** What the permissions about a policy's columns say to one caller. */
export interface Verdicts {
  /** The verdicts in one short text. */
  readonly mask: string;
  of(permission: Permission): Verdict;
}

/** The rows a caller may see: as data, and checked against the model. */
export interface Scope {
  readonly where: Where | boolean;
  readonly compiled: CompiledWhere;
  /** The access of the resource decides about the rows: it may find them sooner. */
  readonly byAccess?: boolean;
}

/** The rows a write may reach: those the caller sees, and those among them that its action is allowed on. */
export interface WriteScope extends Scope {
  /** Absent: seeing a row is enough. */
  readonly allowed?: { readonly action: string; readonly compiled: CompiledWhere };
}

/** What a request asks a policy for, beyond its operation. */
export interface AskedOf extends Pick<AskedRows, 'filters' | 'keys'> {
  /** The policy whose keys and filters these are. */
  readonly policy: object;
}

/** One request as policies see it. What a policy decides for the caller is decided once and kept here. */
export interface CrudRequest {
  readonly context: PermissionContext;
  readonly user: User | null;
  readonly principal: Principal | null;
  readonly tenant: string | null;
  readonly action: string;
  readonly clock: Clock;
  readonly services: ServiceScope;
  readonly requestId: string | null;
  /** By alias; the open transaction of the request in place of its database. */
  readonly databases: Readonly<Record<string, Db>>;
  /** The audience of the controller: its policies have the rows. Null: the resource's own rules. */
  readonly audience: string | null;
  /** The class of the controller; null for programs and the admin site. */
  readonly controller: object | null;
  /** Of a live list: asks the access of a resource, in place of its `condition`. */
  readonly accessRows?: ((access: RowAccess, context: AccessContext) => Promise<Where | boolean>) | undefined;
  /** Absent: a list without filters, or a new row. */
  readonly asked?: AskedOf | undefined;
  /** By policy. */
  readonly verdicts: Map<object, Verdicts>;
  /** By policy. */
  readonly scopes: Map<object, Scope>;
}

/** The same request, for another action of its caller. */
export function forAction(request: CrudRequest, action: string): CrudRequest {
  const { context, user, principal, tenant, clock, requestId, databases, audience, controller, asked, verdicts, scopes } = request;
  return {
    context,
    user,
    principal,
    tenant,
    action,
    clock,
    get services() {
      return request.services;
    },
    requestId,
    databases,
    audience,
    controller,
    asked,
    verdicts,
    scopes,
  };
}

export function callerOf({ user, principal, tenant, action, audience, controller, clock, services }: CrudRequest): CrudCaller {
  return { user, principal, tenant, action, audience, controller, now: clock.now(), services };
}
