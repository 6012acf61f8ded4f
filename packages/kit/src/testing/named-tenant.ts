import type { App } from '../app/declare/module.ts';

export interface NamedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The request with its tenant named where the app reads it: a header, the parameter of the path, the host name. */
export function namingTenant({ tenantPlaces }: Pick<App, 'tenantPlaces'>, tenant: string, url: string): NamedRequest {
  if (tenantPlaces.length === 0)
    throw new Error(
      'as(user, { tenant }): the app does not declare where requests name a tenant. Set createApp({ tenantParameter }), or pass { headers } instead.',
    );
  let path = url;
  const headers: Record<string, string> = {};
  for (const place of tenantPlaces) {
    if ('path' in place) path = path.replace(new RegExp(`/:${place.path}(?=[/?]|$)`), () => `/${encodeURIComponent(tenant)}`);
    else if (Object.keys(headers).length > 0) continue;
    else if ('header' in place) headers[place.header.toLowerCase()] = tenant;
    else headers['host'] = `${tenant}.${place.subdomainOf}`;
  }
  return { url: path, headers };
}
