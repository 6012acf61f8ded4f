import type { AudienceFault, CallFault } from './call-fault.ts';

// The audience of an event. Subscriptions choose among the events of an audience; they never widen it.

export type Audience =
  | { readonly kind: 'owner'; readonly owner: string }
  | { readonly kind: 'owner_in_tenant'; readonly owner: string; readonly tenantKey: string }
  | { readonly kind: 'tenant'; readonly tenantKey: string }
  | { readonly kind: 'broadcast' };

export interface AudienceOptions {
  /** Endpoints of this user, in every tenant unless `tenantKey` is set. */
  readonly owner?: string | undefined;
  /** Endpoints of this tenant. */
  readonly tenantKey?: string | undefined;
  /** `true`: every endpoint that subscribed to the event. */
  readonly broadcast?: boolean | undefined;
}

/** Thrown before anything is written. */
export class InvalidAudience extends Error {
  override readonly name = 'InvalidAudience';
  readonly code: AudienceFault;
  /** Everything that is wrong with the call of `publish`, beginning with `code`. */
  readonly faults: readonly CallFault[];

  constructor(code: AudienceFault, message: string, faults: readonly CallFault[] = [{ code, message }]) {
    super(message);
    this.code = code;
    this.faults = faults;
  }
}

/**
 * The audience the publisher named. Only `undefined` counts as "not given": an `owner` that turned out null or empty
 * must not silently widen the event to a whole tenant.
 */
export function parseAudience({ owner, tenantKey, broadcast }: AudienceOptions): Audience {
  if (owner !== undefined && !isKey(owner)) throw new InvalidAudience('owner_invalid', 'owner must be a nonempty string.');
  if (tenantKey !== undefined && !isKey(tenantKey)) throw new InvalidAudience('tenant_key_invalid', 'tenantKey must be a nonempty string.');
  if (broadcast !== undefined && typeof broadcast !== 'boolean')
    throw new InvalidAudience('broadcast_invalid', 'broadcast must be a boolean.');
  if (broadcast === true) {
    if (owner === undefined && tenantKey === undefined) return { kind: 'broadcast' };
    throw new InvalidAudience('audience_conflict', 'A broadcast reaches every subscriber; it cannot be combined with owner or tenantKey.');
  }
  if (owner !== undefined && tenantKey !== undefined) return { kind: 'owner_in_tenant', owner, tenantKey };
  if (owner !== undefined) return { kind: 'owner', owner };
  if (tenantKey !== undefined) return { kind: 'tenant', tenantKey };
  throw new InvalidAudience('audience_missing', 'Name the audience of the event: owner, tenantKey, or broadcast: true for public events.');
}

/** The membership of an endpoint; personal endpoints have an empty tenant key. */
export interface EndpointMembership {
  readonly owner: string;
  readonly tenantKey: string;
}

/** The scheme of the URL of a destination: what follows is its name. No URL policy admits it, and no caller can own such an endpoint. */
export const DESTINATION_SCHEME = 'destination:';

/** The operator's own endpoints belong to nobody and receive the events of every audience. */
export function isOperators({ owner, tenantKey }: EndpointMembership): boolean {
  return owner === '' && tenantKey === '';
}

/** SQL: the same of a row of endpoints, subscriptions or their periods. */
export const operatorsSql = (row: string): string => `(${row}.owner_id = '' and ${row}.tenant_key = '')`;

/** The name of the destination that an endpoint stands for; null: it is an HTTP endpoint. */
export function destinationNameOf(endpoint: {
  readonly owner_id: string;
  readonly tenant_key: string;
  readonly url: string;
}): string | null {
  const { owner_id: owner, tenant_key: tenantKey, url } = endpoint;
  return isOperators({ owner, tenantKey }) && url.startsWith(DESTINATION_SCHEME) ? url.slice(DESTINATION_SCHEME.length) : null;
}

/** Whether the event is meant for the endpoint. An event without an audience (null, from older rows) is meant for no endpoint. */
export function reaches(audience: Audience | null, endpoint: EndpointMembership): boolean {
  if (audience !== null && isOperators(endpoint)) return true;
  switch (audience?.kind) {
    case 'owner':
      return endpoint.tenantKey === '' && endpoint.owner === audience.owner;
    case 'owner_in_tenant':
      return endpoint.tenantKey === audience.tenantKey && endpoint.owner === audience.owner;
    case 'tenant':
      return endpoint.tenantKey === audience.tenantKey;
    case 'broadcast':
      return true;
    default:
      return false;
  }
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
