import { resource } from '../../../crud/checks/declare-resource.ts';
import { STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { webhookErrors } from '../errors.ts';
import { assignAudience } from '../maintain/assign-audience.ts';
import { webhookEvents } from '../models.ts';
import { InvalidAudience, parseAudience, type Audience } from '../publishing/audience.ts';
import { AudienceBody, type AudienceFields } from '../schemas.ts';
import { webhooksOf } from '../webhooks.ts';
import { eventsOf, SENT_STATES, type SentState, sentStates } from './events-of-caller.ts';

/** Published events. The application publishes them; staff assigns an audience to those that have none. */
export const eventResource = resource(webhookEvents, {
  changes: 'trigger',
  name: 'webhook_event',
  missing: webhookErrors.event_not_found,
  rows: (caller) => eventsOf(caller),
  audiences: { [STAFF]: { rows: true } },
  computed: {
    sent: {
      requires: ['id'],
      response: jsonSchema<SentState>({
        type: 'string',
        enum: [...SENT_STATES],
        description:
          '`none`: to no endpoint of yours. `failed`: a delivery failed. `pending`: one is on its way. `succeeded`: all arrived.',
      }),
      load: (rows, { db, caller }) => sentStates(rows, db, caller),
    },
  },
  input: [],
  hidden: ['data', 'traceparent'],
  writes: 'verbs',
  actions: {
    'assign-audience': {
      audience: STAFF,
      summary: 'Assign an audience to an event that has none',
      input: AudienceBody,
      raises: [webhookErrors.audience_assigned],
      async run({ row, input, ...context }) {
        const audience = await audienceOf(context.tx, input);
        if (!(await assignAudience(context.tx, row.id, audience))) throw webhookErrors.audience_assigned();
        await recordAudience(context, row.id, audience);
        return audience;
      },
    },
  },
});

/** An audience has the owner and the tenant that its kind needs, and no others: one that is left over must not narrow or widen anything. */
async function audienceOf(db: Db, { audience, owner, tenant_key: tenantKey }: AudienceFields): Promise<Audience> {
  const needs = { owner: audience.startsWith('owner'), tenant_key: audience.endsWith('tenant') };
  const given = { owner: owner ?? '', tenant_key: tenantKey ?? '' };
  const faults = new FaultCollector();
  for (const name of ['owner', 'tenant_key'] as const) {
    if (needs[name] && given[name] === '') faults.refuse(fault(name, 'required', 'This audience needs it.'));
    if (!needs[name] && given[name] !== '') faults.refuse(fault(name, 'not_allowed', 'This audience has none: leave it empty.'));
  }
  const ownerId = needs.owner && given.owner !== '' ? await webhooksOf(db).owners.find(db, given.owner) : undefined;
  if (ownerId === null) faults.refuse(fault('owner', 'unknown_user', 'There is no such user.'));
  faults.throwIfAny();
  try {
    return parseAudience({
      owner: ownerId ?? undefined,
      ...(needs.tenant_key ? { tenantKey: given.tenant_key } : {}),
      ...(audience === 'broadcast' ? { broadcast: true } : {}),
    });
  } catch (error) {
    if (error instanceof InvalidAudience) throw fault('audience', error.code, error.message);
    throw error;
  }
}

function fault(field: keyof AudienceFields, code: string, message: string) {
  return coreErrors.validation_error({ errors: [{ location: ['body', field], code, message }] });
}

async function recordAudience({ tx, principal, requestId }: Omit<WriteContext, 'user'>, id: string, audience: Audience): Promise<void> {
  await webhooksOf(tx).registry.audit?.record(tx, [
    {
      actor: principal,
      action: 'webhook_event.audience_assigned',
      target_type: 'webhook_event',
      target_id: id,
      tenant: 'tenantKey' in audience ? audience.tenantKey : null,
      before: { audience: null },
      after: {
        audience: audience.kind,
        ...('owner' in audience ? { owner_id: audience.owner } : {}),
        ...('tenantKey' in audience ? { tenant_key: audience.tenantKey } : {}),
      },
      request_id: requestId,
    },
  ]);
}
