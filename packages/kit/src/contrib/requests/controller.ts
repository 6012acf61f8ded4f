import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { filter, words } from '../../crud/declare/filter.ts';
import { avg, count, max, sum } from '../../crud/declare/metric.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { uuidv7LowerBound } from '../../db/values/uuidv7.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Fault } from '../../options/fault.ts';
import { flag } from '../../options/value-rule.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { QUOTA_PERIODS } from '../../throttle/quota.ts';
import { QUOTA_KINDS } from './models.ts';
import { quotaResource, requestResource, usageResource } from './resource.ts';

// Sessions may read their own; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });
const scope = 'requests';
const readOnly = { create: false, update: false, partialUpdate: false, destroy: false } as const;

const text = jsonSchema<string>({ type: 'string', minLength: 1, maxLength: IDENTITY_LENGTH_MAX });
const time = jsonSchema<string>({ type: 'string', format: 'date-time' });
const day = jsonSchema<string>({ type: 'string', format: 'date' });
const oneOf = <V extends string>(values: readonly V[]) => jsonSchema<V>({ type: 'string', enum: [...values] });
/** A time as a key: ids are in the order of time, and so are the indexes. */
const keyAt = (at: string): string => uuidv7LowerBound(new Date(at));

const requestFilters = {
  failed: words('this.failed', { description: 'Responses with a status of 400 or above, and those that were not complete.' }),
  key_id: filter(text, (id) => ({ key_id: id }), { description: 'The id of an API key.' }),
  request_id: filter(text, (id) => ({ request_id: id })),
  since: filter(time, (at) => ({ id: { gte: keyAt(at) } }), { description: 'At this time or later.' }),
  until: filter(time, (at) => ({ id: { lt: keyAt(at) } }), { description: 'Before this time.' }),
} as const;

const OwnRequests = CrudController(requestResource, {
  permission,
  scope,
  output: [
    'id',
    'finished_at',
    'duration_ms',
    'method',
    'route',
    'path',
    'status',
    'failed',
    'aborted',
    'error_code',
    'key_id',
    'request_id',
    'version',
    'deprecated',
    'via',
  ],
  filters: requestFilters,
  queryMethod: false,
  ordering: { by: ['id'], default: ['-id'] },
  page: { default: 50, max: 100, count: { upTo: 1000 } },
  stats: {
    by: ['finished_at', 'failed', 'route', 'method', 'status', 'error_code', 'key_id'],
    metrics: { requests: count(), duration: avg('duration_ms'), slowest: max('duration_ms') },
  },
  operations: { list: { summary: 'List your requests, newest first' }, retrieve: { field: 'read' }, ...readOnly },
});

/** Users see their own requests in the tenant that they act for. Mounted where the app likes: `'/requests': RequestController`. */
export class RequestController extends OwnRequests {
  static override readonly tags: readonly string[] = ['requests'];
  /** `GET` with `Accept: text/event-stream` follows the list. Each request is then written to the change log, too: `kit migrate` creates the triggers. */
  static readonly live: boolean = false;
  static readonly [controllerOptions] = { live: flag };

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'requests', this.constructor.name, 'requests()'), ...super.faults(app)];
  }
}

const OwnUsage = CrudController(usageResource, {
  permission,
  scope,
  output: ['id', 'day', 'method', 'route', 'version', 'deprecated', 'via', 'key_id', 'requests', 'failures'],
  filters: {
    since: filter(day, (from) => ({ day: { gte: from } }), { description: 'On this day or later.' }),
    until: filter(day, (to) => ({ day: { lte: to } }), { description: 'On this day or earlier.' }),
    key_id: filter(text, (id) => ({ key_id: id }), { description: 'The id of an API key.' }),
    // Among the few rows of a caller: no index of its own.
    route: filter(text, (route) => ({ route })),
    method: filter(text, (method) => ({ method })),
    deprecated: words('this.deprecated'),
  },
  queryMethod: false,
  ordering: { by: ['day'], default: ['-day'] },
  page: { default: 100, max: 500, count: { upTo: 1000 } },
  export: ['csv', 'jsonl'],
  stats: { by: ['day', 'route', 'method', 'key_id'], metrics: { requests: sum('requests'), failures: sum('failures') } },
  operations: {
    list: { summary: 'List your usage by day, operation and key' },
    retrieve: { field: 'read' },
    export: { summary: 'Download your usage as CSV' },
    ...readOnly,
  },
});

/** Users see how often they called what, by day: as a list, as sums and as CSV. Mounted where the app likes: `'/usage': UsageController`. */
export class UsageController extends OwnUsage {
  static override readonly tags: readonly string[] = ['requests'];

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'requests', this.constructor.name, 'requests()'), ...super.faults(app)];
  }
}

const OwnQuotas = CrudController(quotaResource, {
  permission,
  scope,
  output: ['id', 'kind', 'key_id', 'period', 'starts_at', 'ends_at', 'used', 'quota'],
  filters: {
    key_id: filter(text, (id) => ({ key_id: id }), { description: 'The id of an API key.' }),
    // Among the few rows of a caller: no index of its own.
    kind: filter(oneOf(QUOTA_KINDS), (kind) => ({ kind })),
    period: filter(oneOf(QUOTA_PERIODS), (period) => ({ period })),
  },
  queryMethod: false,
  ordering: { by: ['ends_at'], default: ['-ends_at'] },
  page: { default: 50, max: 100, count: { upTo: 1000 } },
  export: ['csv', 'jsonl'],
  operations: {
    list: { summary: 'List what you used of your quotas, newest periods first' },
    retrieve: { field: 'read' },
    export: { summary: 'Download what you used of your quotas as CSV' },
    ...readOnly,
  },
});

/** Users see what they and their keys used of their quotas, exactly. Mounted where the app likes: `'/quotas': QuotaController`. */
export class QuotaController extends OwnQuotas {
  static override readonly tags: readonly string[] = ['requests'];

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'requests', this.constructor.name, 'requests()'), ...super.faults(app)];
  }
}
