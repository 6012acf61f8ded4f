// What a server does when a client is careless or hostile: asked over HTTP, judged by what is in the answers and in the rows afterwards.
import { type DataSize, orderId } from './data.ts';
import { ownerId } from './shop.ts';

export interface Probed {
  readonly port: number;
  readonly size: DataSize;
  /** A list whose one filter is a name the server does not know; one whose filter names another owner. */
  readonly unknownFilter: string;
  readonly foreignFilter: string;
}

type Answer = { readonly status: number; readonly text: string; readonly body: Record<string, unknown>; readonly etag: string | null };
type Verdict = 'yes' | `no: ${string}`;

async function call(
  port: number,
  owner: number,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/orders${path}`, {
    method,
    headers: { authorization: `Bearer owner-${owner}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = {};
  }
  return { status: response.status, text, body: (parsed ?? {}) as Record<string, unknown>, etag: response.headers.get('etag') };
}

const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000';
const SQL_TEXT = /select |insert into|update "|violates|constraint|relation "|syntax error|column "/i;
const withoutIds = ({ status, text }: Answer) =>
  `${status} ${text.replaceAll(/"(?:request_id|timestamp)":"[^"]*"/g, '').replaceAll(/[0-9a-f-]{36}/g, '')}`;

export const probes: Readonly<Record<string, (probed: Probed) => Promise<Verdict>>> = {
  'a change made meanwhile is not lost': async ({ port, size }) => {
    const path = `/${orderId(size, 1, 1)}`;
    const { etag } = await call(port, 1, 'GET', path);
    const ifMatch: Record<string, string> = etag === null ? {} : { 'if-match': etag };
    const answers = await Promise.all([7, 8, 9, 10].map((quantity) => call(port, 1, 'PATCH', path, { quantity }, ifMatch)));
    const taken = answers.filter(({ status }) => status < 300).length;
    return taken === 1 ? 'yes' : `no: ${taken} of 4 changes of one version were taken`;
  },
  'the owner cannot be sent': async ({ port, size }) => {
    const path = `/${orderId(size, 1, 2)}`;
    const { status } = await call(port, 1, 'PATCH', path, { owner_id: ownerId(2), quantity: 5 });
    const still = await call(port, 1, 'GET', path);
    if (still.status !== 200) return `no: the row went to another owner (answer ${status})`;
    return status >= 400 ? 'yes' : `no: ${status}, ignored in silence`;
  },
  "another's row is an unknown one": async ({ port, size }) => {
    const foreign = await call(port, 1, 'GET', `/${orderId(size, 2, 2)}`);
    const unknown = await call(port, 1, 'GET', `/${UNKNOWN_ID}`);
    return foreign.status === 404 && withoutIds(foreign) === withoutIds(unknown) ? 'yes' : `no: ${foreign.status} and ${unknown.status}`;
  },
  'an unknown filter is refused': async ({ port, unknownFilter }) => {
    const { status } = await call(port, 1, 'GET', unknownFilter);
    return status >= 400 && status < 500 ? 'yes' : `no: ${status}`;
  },
  "a filter shows no other owner's rows": async ({ port, foreignFilter }) => {
    const { text } = await call(port, 1, 'GET', foreignFilter);
    return text.includes(`"owner_id":"${ownerId(2)}"`) ? 'no: it does' : 'yes';
  },
  'a broken reference is a 4xx without SQL': async ({ port }) => {
    const answer = await call(port, 1, 'POST', '', { item: 'x', quantity: 1, total: '1.00', customer_id: UNKNOWN_ID });
    if (SQL_TEXT.test(answer.text)) return `no: SQL text in a ${answer.status}`;
    return answer.status >= 400 && answer.status < 500 ? 'yes' : `no: ${answer.status}`;
  },
};
