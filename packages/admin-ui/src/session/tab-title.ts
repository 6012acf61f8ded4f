import { useEffect } from 'react';

/** The title of the application, as the server wrote it into the document. */
export const siteTitle = document.title;

export function useTabTitle(title: string): void {
  useEffect(() => {
    document.title = siteTitle === '' ? title : `${title} · ${siteTitle}`;
  }, [title]);
}
