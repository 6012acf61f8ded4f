import { resource } from '../../../crud/checks/declare-resource.ts';
import { one } from '../../../crud/declare/relation.ts';
import type { WriteContext } from '../../../crud/declare/resource.ts';
import { deliveryRecord } from '../endpoints/endpoint-record.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { webhookDeliveries, webhookEndpoints } from '../models.ts';
import { RetryBody } from '../schemas.ts';
import { webhooksOf } from '../webhooks.ts';

/** Deliveries belong to an endpoint: who sees it sees them. Workers write them, callers can only send one again. */
export const deliveryResource = resource(webhookDeliveries, {
  name: 'webhook_delivery',
  missing: webhookErrors.delivery_not_found,
  rows: () => ({ endpoint: { is: {} } }),
  relations: { endpoint: one(() => webhookEndpoints, 'endpoint_id') },
  input: [],
  hidden: ['endpoint_id', 'ordering_key', 'claim_token', 'claimed_until'],
  writes: 'verbs',
  actions: {
    retry: {
      summary: 'Send a delivery again, with all its attempts',
      input: RetryBody,
      // The endpoint is locked before its deliveries, as when it is disabled or deleted.
      lock: false,
      raises: [
        webhookErrors.delivery_claimed,
        webhookErrors.delivery_held,
        webhookErrors.delivery_succeeded,
        webhookErrors.endpoint_disabled,
        webhookErrors.endpoint_owner_not_allowed,
      ],
      run: ({ row, input, ...context }) => sendAgain(context, row, input.force === true),
    },
  },
});

/** A manual retry, with its audit entry. */
export async function sendAgain(
  { tx, principal, requestId }: Pick<WriteContext, 'tx' | 'principal' | 'requestId'>,
  before: WebhookDelivery,
  force: boolean,
): Promise<WebhookDelivery> {
  const after = await retryDelivery(tx, before.id, { force });
  await webhooksOf(tx).registry.audit?.record(tx, [
    {
      actor: principal,
      action: 'webhook_delivery.sent_again',
      target_type: 'webhook_delivery',
      target_id: before.id,
      before: deliveryRecord(before),
      after: deliveryRecord(after),
      request_id: requestId,
    },
  ]);
  return after;
}
