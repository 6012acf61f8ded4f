import type { App } from '../../app/declare/module.ts';
import type { Fault } from '../../options/fault.ts';
import { WebhookEndpointController } from './controller.ts';

/** A resource, as far as the audience of its events is concerned. */
interface Publishing {
  readonly name: string;
  readonly options: { readonly events?: unknown; readonly tenant?: string; readonly owner?: unknown; readonly using?: string };
}

/**
 * W022: resources whose events no endpoint of a mounted controller can receive. Endpoints may also come from the admin site or from a program, so it
 * is a warning. The audience of events that a function returns is not known before they are published.
 */
export function unreachableEvents(app: App): Fault[] {
  const served = app.controllers.flatMap((each): Served[] => (each instanceof WebhookEndpointController ? [servedBy(each)] : []));
  const declared = new Set<object>(
    [...app.controllers, ...app.resources].map((each) => ('crudResource' in each ? (each.crudResource as object) : each)),
  );
  return [...declared].flatMap((each) => faultOf(each as Partial<Publishing>, served));
}

interface Served {
  readonly controller: string;
  readonly ofTenant: boolean;
  /** Endpoints of the tenant itself: events for a user in the tenant are not for these. */
  readonly tenantOwned: boolean;
  readonly using: string;
}

function servedBy(controller: WebhookEndpointController): Served {
  const { name, tenantField, tenantOwned, using } = controller.constructor as typeof WebhookEndpointController;
  return { controller: name, ofTenant: tenantField !== null, tenantOwned, using };
}

function faultOf({ name = '', options }: Partial<Publishing>, served: readonly Served[]): Fault[] {
  if ((options?.events !== true && options?.events !== 'tenant') || (options.tenant === undefined && options.owner === undefined))
    return [];
  const { using = 'default' } = options;
  const ofTenant = options.tenant !== undefined;
  const others = served.filter((each) => each.using === using);
  const hasOwner = options.owner !== undefined && options.events !== 'tenant';
  if (others.some((each) => each.ofTenant === ofTenant && !(each.tenantOwned && hasOwner))) return [];
  const wanted = ofTenant ? (hasOwner ? "a user's endpoints in a tenant" : 'endpoints of a tenant') : 'personal endpoints';
  const has = ({ ofTenant: isOfTenant, tenantOwned }: Served): string =>
    isOfTenant ? (tenantOwned ? 'endpoints of the tenant itself' : 'endpoints of a tenant') : 'personal endpoints';
  const mounted = [...new Set(others.map(has))].join(' and ');
  const place = using === 'default' ? '' : ` of the database "${using}"`;
  const found =
    others.length === 0
      ? `no controller of webhook endpoints${place} is mounted`
      : `${others.map(({ controller }) => controller).join(' and ')} ${others.length === 1 ? 'has' : 'have'} ${mounted} only`;
  const statics = [...(ofTenant ? ["tenantField = 'tenant_key'"] : []), ...(using === 'default' ? [] : [`using = '${using}'`])];
  const body = statics.map((each) => `static override readonly ${each};`).join(' ');
  // The company's own endpoints are there: mostly the events are meant for them.
  const forTenant =
    hasOwner && others.some((each) => each.ofTenant && each.tenantOwned)
      ? "Set events: 'tenant' for the endpoints of the tenant. Or: "
      : '';
  const line =
    ofTenant && !hasOwner && using === 'default'
      ? "Mount '/tenant-webhooks': TenantWebhookController"
      : body === ''
        ? "Mount '/webhooks': WebhookEndpointController"
        : `Mount class ${ofTenant ? 'Tenant' : 'Personal'}Webhooks extends WebhookEndpointController { ${body} }`;
  return [
    {
      id: 'W022',
      message: `resource(${name}) publishes its events to ${wanted}, and ${found}.`,
      hint: `${forTenant}${forTenant === '' ? line : line.replace('Mount', 'mount')}. Endpoints that the admin site or a program creates receive the events without it.`,
    },
  ];
}
