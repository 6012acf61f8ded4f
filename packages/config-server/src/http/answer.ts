import type { ServerResponse } from 'node:http';

/** A complete answer, ready to be written: headers as node's flat list, body as bytes. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** On every answer: the bodies hold secrets, so no cache may keep them and no browser may guess their type. */
export const EVERY_ANSWER: readonly string[] = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];

const NO_BODY = Buffer.alloc(0);

export function answerWith(status: number, contentType: string, body: Buffer, headers: readonly string[] = []): Answer {
  return {
    status,
    headers: ['Content-Type', contentType, 'Content-Length', String(body.length), ...EVERY_ANSWER, ...headers],
    body,
  };
}

export function json(status: number, value: unknown): Answer {
  return answerWith(status, 'application/json; charset=utf-8', Buffer.from(JSON.stringify(value)));
}

export function notModified(headers: readonly string[]): Answer {
  return { status: 304, headers: [...EVERY_ANSWER, ...headers], body: NO_BODY };
}

export function sendAnswer(response: ServerResponse, answer: Answer, headOnly: boolean, keepAlive: boolean): void {
  if (response.destroyed) return;
  if (!keepAlive) response.shouldKeepAlive = false;
  response.writeHead(answer.status, answer.headers as string[]);
  if (headOnly || answer.body.length === 0) response.end();
  else response.end(answer.body);
}
