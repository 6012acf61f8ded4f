import type { App } from '../../src/app/index.ts';

/** `fetch` that reaches the app under whatever name the URL has, without a network. */
export function fetchThrough(app: Pick<App, 'inject'>): typeof fetch {
  return async (input, init = {}) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    const body = await request.text();
    const response = await app.inject({
      method: request.method as 'POST',
      url: `${url.pathname}${url.search}`,
      headers: { ...Object.fromEntries(request.headers), host: url.host },
      ...(body === '' ? {} : { payload: body }),
    });
    const headers = Object.entries(response.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    return new Response([204, 304].includes(response.statusCode) ? null : response.rawPayload, { status: response.statusCode, headers });
  };
}
