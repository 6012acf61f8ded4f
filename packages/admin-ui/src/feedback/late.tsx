import { Loader, Skeleton } from '@mantine/core';
import { Suspense, type ReactNode } from 'react';
import { CrashGuard } from './crash-guard.tsx';
import css from './feedback.module.css';

interface LateProps {
  /** How high what comes is, about. */
  readonly height?: number;
  readonly children: ReactNode;
}

/** A part of a page that comes later: something says that it is on its way. */
export function Late({ height = 320, children }: LateProps) {
  return (
    <Suspense
      fallback={
        <div role="status">
          <span className="visually-hidden">Loading …</span>
          <Skeleton height={height} />
        </div>
      }
    >
      {children}
    </Suspense>
  );
}

/** The same of what opens over a page. One that cannot be loaded says so there, and leaves the page alone. */
export function LateOver({ children }: { readonly children: ReactNode }) {
  return (
    <CrashGuard isOver>
      <Suspense
        fallback={
          <div role="status" className={css['over']}>
            <Loader size="sm" aria-label="Loading" />
          </div>
        }
      >
        {children}
      </Suspense>
    </CrashGuard>
  );
}
