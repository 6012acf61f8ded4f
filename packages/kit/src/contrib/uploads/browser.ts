// Sends a file of a browser to an UploadController. No imports: this file is all a page needs.

export interface SendUploadOptions {
  /** Where the controller is mounted: `/v1/uploads`. */
  readonly endpoint: string;
  /** Sent with requests to the app, not with those to the store: an API key, a CSRF token. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Called while the file is sent, with the bytes that were sent and those of the file. */
  readonly onProgress?: (sent: number, total: number) => void;
  /** Ends the transfer when it is aborted. */
  readonly signal?: AbortSignal;
  /** Told the id as soon as there is one: keep it to go on after an interruption. */
  readonly onStart?: (id: string) => void;
  /** The id of an interrupted multipart upload of the same file. */
  readonly resume?: string;
  /** Files above this are sent in parts. Default: 16 MiB. */
  readonly multipartAbove?: number;
}

/** What the app answered, and the problem it described. */
export class UploadFailed extends Error {
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, problem: { readonly code?: string; readonly detail?: string }) {
    super(problem.detail ?? `The upload failed (${status}).`);
    this.status = status;
    this.code = problem.code;
  }
}

interface Target {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly fields?: Record<string, string>;
}
type Part = Target & { readonly number: number };
// oxlint-disable-next-line typescript/no-explicit-any -- answers of the app, whose document describes them
type Answer = any;

declare const location: { readonly href: string };
declare class XMLHttpRequest {
  readonly status: number;
  readonly upload: XMLHttpRequest;
  addEventListener(type: string, listener: (event: { readonly loaded: number }) => void): void;
  open(method: string, url: URL): void;
  setRequestHeader(name: string, value: string): void;
  send(body: Blob | FormData): void;
  abort(): void;
}

const TRIES = 4;
const PARALLEL = 3;

/** Resolves to the completed upload. */
export async function sendUpload(file: File, options: SendUploadOptions): Promise<{ readonly id: string; readonly state: string }> {
  const { endpoint, headers = {}, onProgress, signal, onStart, resume, multipartAbove = 2 ** 24, ...unknown } = options ?? {};
  for (const name in unknown) throw new TypeError(`sendUpload(): unknown option "${name}".`);
  if (!file?.stream || !endpoint) throw new TypeError('Use sendUpload(file, { endpoint }).');
  const sent = new Map<number, number>();
  const progress = (part: number, bytes: number) => {
    sent.set(part, bytes);
    onProgress?.(
      [...sent.values()].reduce((sum, each) => sum + each, 0),
      file.size,
    );
  };

  const call = (path: string, body: object): Promise<Answer> =>
    retry(async () => {
      const response = await fetch(endpoint + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { ...headers, 'content-type': 'application/json' },
        signal: signal ?? null,
      });
      const answer: Answer = await response.json().catch(() => ({}));
      if (!response.ok) throw new UploadFailed(response.status, answer);
      return answer;
    });

  const retry = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const final = error instanceof UploadFailed && error.status < 500 && error.status !== 429;
        if (final || signal?.aborted || attempt === TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
      }
    }
  };

  /** XMLHttpRequest, because fetch does not tell how much was sent. */
  const send = ({ method, url, headers: signed, fields }: Target, bytes: Blob, part: number) =>
    retry(
      () =>
        new Promise<void>((resolve, reject) => {
          const request = new XMLHttpRequest();
          request.open(method, new URL(url, new URL(endpoint, location.href)));
          for (const [name, value] of Object.entries(signed)) if (name !== 'content-length') request.setRequestHeader(name, value);
          request.upload.addEventListener('progress', ({ loaded }) => progress(part, Math.min(loaded, bytes.size)));
          request.addEventListener('load', () => {
            // An address works once: a try whose answer was lost has used it.
            if (request.status < 300 || request.status === 409) resolve();
            else reject(new UploadFailed(request.status, {}));
          });
          request.addEventListener('error', () => reject(new Error('Connection failed.')));
          request.addEventListener('abort', () => reject(signal?.reason as Error));
          signal?.addEventListener('abort', () => request.abort());
          if (signal?.aborted) reject(signal.reason as Error);
          else request.send(fields ? form(fields, bytes) : bytes);
        }),
    ).then(() => progress(part, bytes.size));

  const announced = { filename: file.name, content_type: file.type || 'application/octet-stream', size: file.size };

  const sendParts = async (id: string): Promise<void> => {
    const { part_size: size, part_count: count, uploaded }: Answer = await call(`/${id}/parts`, { parts: [] });
    const arrived = new Map<number, string>(uploaded.map((part: Answer) => [part.number, part.checksum_sha256]));
    let next = 1;
    const work = async () => {
      while (next <= count) {
        const number = next++;
        const bytes = file.slice((number - 1) * size, number * size);
        const checksum_sha256 = await checksum(bytes);
        if (arrived.get(number) !== checksum_sha256) {
          const { parts }: { parts: Part[] } = await call(`/${id}/parts`, { parts: [{ number, checksum_sha256 }] });
          await send(parts[0] as Part, bytes, number);
        } else progress(number, bytes.size);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  };

  if (resume || file.size > multipartAbove) {
    const id: string = resume || (await call('', { ...announced, multipart: true })).id;
    onStart?.(id);
    await sendParts(id);
    return call(`/${id}/complete`, {});
  }
  const created: Answer = await call('', { ...announced, checksum_sha256: await checksum(file) });
  onStart?.(created.id);
  await send(created, file, 1);
  return call(`/${created.id}/complete`, {});
}

async function checksum(bytes: Blob): Promise<string> {
  // Browsers have it on secure pages only.
  if (!crypto.subtle) throw new Error('Uploads need HTTPS, or localhost.');
  const hash = await crypto.subtle.digest('SHA-256', await bytes.arrayBuffer());
  return btoa(String.fromCharCode(...new Uint8Array(hash)));
}

function form(fields: Record<string, string>, bytes: Blob): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  data.set('file', bytes);
  return data;
}
