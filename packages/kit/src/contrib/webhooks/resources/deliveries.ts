import { resource } from '../../../crud/checks/declare-resource.ts';
import { visibleTo } from '../../../crud/declare/field-rule.ts';
import { one } from '../../../crud/declare/relation.ts';
import { STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import { isStaff } from '../../../permissions/built-ins.ts';
import { deliveryRecord } from '../endpoints/endpoint-record.ts';
import { findEndpoint, type WebhookDelivery } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { retryDelivery, retryEarlier } from '../maintain/retry.ts';
import { webhookDeliveries, webhookEndpoints } from '../models.ts';
import { RetryBody } from '../schemas.ts';
import { webhooksOf } from '../webhooks.ts';

const refusals = [webhookErrors.delivery_claimed, webhookErrors.endpoint_disabled, webhookErrors.endpoint_owner_not_allowed] as const;

/** Deliveries belong to an endpoint: who sees it sees them. Workers write them, callers can only send one again. */
export const deliveryResource = resource(webhookDeliveries, {
  changes: 'trigger',
  name: 'webhook_delivery',
  missing: webhookErrors.delivery_not_found,
  rows: () => ({ endpoint: { is: {} } }),
  audiences: { [STAFF]: { rows: true } },
  relations: { endpoint: one(() => webhookEndpoints, 'endpoint_id') },
  input: [],
  hidden: ['claim_token'],
  fields: { endpoint_id: visibleTo(isStaff), ordering_key: visibleTo(isStaff), claimed_until: visibleTo(isStaff) },
  writes: 'verbs',
  actions: {
    retry: {
      summary: 'Send a delivery again, with all its attempts',
      input: RetryBody,
      // The endpoint is locked before its deliveries, as when it is disabled or deleted.
      lock: false,
      raises: [...refusals, webhookErrors.delivery_held, webhookErrors.delivery_succeeded],
      async run({ row, input, ...context }) {
        await recordSent(context, row, await retryDelivery(context.tx, row.id, { force: input.force === true }));
      },
    },
    'retry-earlier': {
      audience: STAFF,
      summary: 'Send the delivery that this delivery waits for',
      lock: false,
      raises: [...refusals, webhookErrors.delivery_pending],
      async run({ row, ...context }) {
        const { before, after } = await retryEarlier(context.tx, row);
        if (after !== null) await recordSent(context, before, after);
        return before.id;
      },
    },
  },
});

async function recordSent(
  { tx, principal, requestId }: Pick<WriteContext, 'tx' | 'principal' | 'requestId'>,
  before: WebhookDelivery,
  after: WebhookDelivery,
): Promise<void> {
  const { audit } = webhooksOf(tx).registry;
  if (audit === null) return;
  const endpoint = await findEndpoint(tx, before.endpoint_id);
  await audit.record(tx, [
    {
      actor: principal,
      action: 'webhook_delivery.sent_again',
      tenant: endpoint?.tenant_key ?? null,
      target_type: 'webhook_delivery',
      target_id: before.id,
      before: deliveryRecord(before),
      after: deliveryRecord(after),
      request_id: requestId,
    },
  ]);
}
