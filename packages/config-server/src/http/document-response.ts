import type { IncomingHttpHeaders } from 'node:http';
import type { Encoding } from '../document/encode.ts';
import type { Installed } from '../section/section.ts';
import { responseWith, notModified, type HttpResponse } from './response.ts';
import { chooseEncoding, matchingTag } from './content-negotiation.ts';

const identityResponses = new WeakMap<Installed, HttpResponse>();

/** The document, or 304. The response of the common case is built once per install. */
export function documentResponse(installed: Installed, headers: IncomingHttpHeaders): HttpResponse | Promise<HttpResponse> {
  const { encoded } = installed;
  const encoding = encoded.compressible ? chooseEncoding(headers['accept-encoding']) : 'identity';
  const known = headers['if-none-match'];
  if (known !== undefined) {
    const others = (['identity', 'gzip', 'br'] as const).filter((other) => other !== encoding);
    const tag = matchingTag(
      known,
      [encoding, ...others].map((each) => encoded.etag(each)),
    );
    if (tag !== undefined) return notModified(validators(installed, tag));
  }
  if (encoding !== 'identity') return compressedResponse(installed, encoding);
  let response = identityResponses.get(installed);
  if (response === undefined) {
    response = responseWith(200, 'application/json; charset=utf-8', encoded.body, validators(installed, encoded.etag('identity')));
    identityResponses.set(installed, response);
  }
  return response;
}

async function compressedResponse(installed: Installed, encoding: Exclude<Encoding, 'identity'>): Promise<HttpResponse> {
  const body = await installed.encoded.compressed(encoding);
  const headers = ['Content-Encoding', encoding, ...validators(installed, installed.encoded.etag(encoding))];
  return responseWith(200, 'application/json; charset=utf-8', body, headers);
}

function validators(installed: Installed, tag: string): string[] {
  return ['ETag', tag, 'Config-Generation', String(installed.generation), 'Vary', 'Accept-Encoding'];
}
