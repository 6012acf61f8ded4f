import { useState, type FormEvent } from 'react';

interface Sending {
  readonly state: 'idle' | 'busy' | 'done';
  /** Why the last try failed; null: it did not, or there was none. */
  readonly fault: unknown;
  readonly send: () => void;
  readonly onSubmit: (event: FormEvent) => void;
}

/** A small form of its own: sent, done, or what went wrong. `work` fails where the server does. */
export function useSending(work: () => Promise<void>): Sending {
  const [state, setState] = useState<Sending['state']>('idle');
  const [fault, setFault] = useState<unknown>(null);
  const run = async (): Promise<void> => {
    setState('busy');
    setFault(null);
    try {
      await work();
      setState('done');
    } catch (error) {
      setFault(error);
      setState('idle');
    }
  };
  const send = (): void => void run();
  return {
    state,
    fault,
    send,
    onSubmit: (event) => {
      event.preventDefault();
      send();
    },
  };
}
