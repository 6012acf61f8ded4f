import { WebhookEndpointController } from 'kit/contrib/webhooks';

/** The webhook endpoints that a person has in an organization: they receive its events, those of tickets only if the person is the author. */
export class OrganizationWebhookController extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}
