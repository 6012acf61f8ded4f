// Requests of the pages to the routes of the application.

/** What a route answered instead of doing what was asked. */
export class Refused extends Error {
  constructor(status, code, sentence) {
    super(sentence);
    this.status = status;
    this.code = code;
  }
}

let csrfToken = null;

/** Sent with what changes something, where the login wants it. */
export function useCsrfToken(token) {
  csrfToken = token;
}

export async function call(method, url, body) {
  const headers = {};
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (csrfToken !== null && method !== 'GET') headers['x-csrf-token'] = csrfToken;
  const request = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
  const response = await fetch(url, { ...request, credentials: 'same-origin' }).catch(() => null);
  if (response === null) throw new Refused(0, 'unreachable', document.body.dataset.failed);
  const text = await response.text();
  const answer = parsed(text);
  if (response.ok) return answer;
  // `detail` is the toolkit's, `message` better-auth's. `errors` says what is wrong with each field.
  const fields = (answer?.errors ?? []).map(({ message }) => message).filter(Boolean);
  const sentence = [answer?.detail ?? answer?.message ?? document.body.dataset.failed, ...fields].join(' ');
  throw new Refused(response.status, answer?.code ?? '', sentence);
}

function parsed(text) {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
