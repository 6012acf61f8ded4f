import type { IncomingHttpHeaders } from 'node:http';
import type { Encoding } from '../document/encode.ts';
import type { Installed } from '../section/section.ts';
import { answerWith, notModified, type Answer } from './answer.ts';
import { chooseEncoding, matchingTag } from './content-negotiation.ts';

const identityAnswers = new WeakMap<Installed, Answer>();

/** The document, or 304. Every byte of the common case is made once per install. */
export function documentAnswer(installed: Installed, headers: IncomingHttpHeaders): Answer | Promise<Answer> {
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
  if (encoding !== 'identity') return compressedAnswer(installed, encoding);
  let answer = identityAnswers.get(installed);
  if (answer === undefined) {
    answer = answerWith(200, 'application/json; charset=utf-8', encoded.body, validators(installed, encoded.etag('identity')));
    identityAnswers.set(installed, answer);
  }
  return answer;
}

async function compressedAnswer(installed: Installed, encoding: Exclude<Encoding, 'identity'>): Promise<Answer> {
  const body = await installed.encoded.compressed(encoding);
  const headers = ['Content-Encoding', encoding, ...validators(installed, installed.encoded.etag(encoding))];
  return answerWith(200, 'application/json; charset=utf-8', body, headers);
}

function validators(installed: Installed, tag: string): string[] {
  return ['ETag', tag, 'Config-Generation', String(installed.generation), 'Vary', 'Accept-Encoding'];
}
