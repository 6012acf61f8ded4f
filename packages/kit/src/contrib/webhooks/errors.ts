import { defineErrors } from '../../errors/catalog.ts';
import { URL_NOT_ALLOWED } from './network/url-policy.ts';
import type { CallFault, PublishFault } from './publishing/call-fault.ts';

/** What callers of the management routes and the verbs behind them are told. */
export const webhookErrors = defineErrors('webhooks', {
  url_not_allowed: {
    status: 422,
    detail: URL_NOT_ALLOWED,
    remedy: 'Use an https URL with a public host name and an allowed port, without user info. For security, the reason is not returned.',
  },
  invalid_events: {
    status: 422,
    detail: 'The list of event types is not valid.',
    remedy: 'Give 1 to 50 event types ("order.paid"), patterns ("order.*") or "*".',
  },
  unknown_event: {
    status: 422,
    detail: 'No available event matches some of the patterns.',
    remedy: 'Subscribe to events that this application publishes.',
  },
  invalid_endpoint: { status: 422, detail: 'The endpoint is not valid.', remedy: 'Correct the fields in `errors`.' },
  endpoint_not_found: {
    status: 404,
    detail: 'There is no such webhook endpoint.',
    remedy: 'Check the id. Endpoints of other owners or tenants return the same error.',
  },
  delivery_not_found: {
    status: 404,
    detail: 'There is no such delivery.',
    remedy: 'List the deliveries of the endpoint; old ones are pruned.',
  },
  event_not_found: { status: 404, detail: 'There is no such event.', remedy: 'List the events; old ones are pruned.' },
  audience_assigned: {
    status: 409,
    detail: 'The event has an audience already.',
    remedy: 'An audience is assigned once; publish the event again for another audience.',
  },
  delivery_claimed: {
    status: 409,
    detail: 'A worker is sending this delivery.',
    remedy: 'Retry when the attempt has ended. The claim of a crashed worker expires 60 seconds after the request timeout.',
  },
  delivery_held: {
    status: 409,
    detail: 'The delivery waits for an earlier one with its ordering key.',
    remedy: 'Retry the delivery in `waits_for`. This delivery is sent when the earlier delivery has succeeded or failed permanently.',
    members: { waits_for: { type: 'string', description: 'The id of the earlier delivery.' } },
  },
  delivery_succeeded: {
    status: 409,
    detail: 'The delivery has succeeded.',
    remedy: 'Repeat with {"force": true} to send it again; the receiver deduplicates on webhook-id.',
  },
  delivery_pending: {
    status: 409,
    detail: 'The delivery is queued already.',
    remedy: 'Wait for its next attempt.',
  },
  endpoint_disabled: {
    status: 409,
    detail: 'The endpoint is disabled.',
    remedy: 'Enable it first: update it with is_active true.',
  },
  endpoint_owner_not_allowed: {
    status: 409,
    detail: 'The owner of the endpoint may not receive events.',
    remedy: 'Reactivate the owner or make the owner a member of the tenant again, or create the endpoint under another owner.',
  },
  too_many_secrets: {
    status: 409,
    detail: 'Too many previous secrets are still active.',
    remedy: 'Rotate again after `retry_at`, when a previous secret expires.',
    members: { retry_at: { type: ['string', 'null'], format: 'date-time', description: 'When the next rotation is possible.' } },
  },
  quota_exceeded: {
    status: 409,
    detail: 'The owner has as many webhook endpoints as allowed.',
    remedy: 'Delete one that is no longer used; `limit` is how many may exist.',
    members: { limit: { type: 'integer', description: 'The number of endpoints that an owner may have.' } },
  },
});

/** A call of `publish` that was refused before anything was written. Audience faults are `InvalidAudience`. */
export class PublishRefused extends Error {
  override readonly name = 'PublishRefused';
  readonly code: PublishFault;
  /** Everything that is wrong with the call, beginning with `code`. */
  readonly faults: readonly CallFault[];

  constructor(code: PublishFault, message: string, faults: readonly CallFault[] = [{ code, message }]) {
    super(message);
    this.code = code;
    this.faults = faults;
  }
}
