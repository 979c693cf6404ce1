"""Makes the states in this directory with a daemon of schema 1: make.py FEEDD. Each has the digests that it verified."""
import socket,struct,subprocess,json,os,signal,time,shutil,sys,random
D=sys.argv[1]
def frame(t): b=t.encode(); return struct.pack('>I',len(b))+b
class C:
    def __init__(s,path):
        s.s=socket.socket(socket.AF_UNIX)
        for _ in range(400):
            try: s.s.connect(path); break
            except OSError: time.sleep(0.05)
        s.n=0
    def rx(s,k):
        b=b''
        while len(b)<k:
            c=s.s.recv(k-len(b)); assert c; b+=c
        return b
    def ask(s,m,p):
        s.n+=1
        s.s.sendall(frame(json.dumps({'jsonrpc':'2.0','id':s.n,'method':m,'params':p},separators=(',',':'))))
        while True:
            r=json.loads(s.rx(struct.unpack('>I',s.rx(4))[0]))
            if r.get('id')==s.n: return r
rnd=random.Random(5)
def el(i): return {'id':i,'n':rnd.randrange(100),'t':'ABC'[rnd.randrange(3)],'s':str(rnd.randrange(20)),'u':'ž😀'}
defs=[{"feed":"c","kind":"collection","multiple":True,"retain":{"count":60},"bins":[{"name":"hi","filter":"@.n > 50","sort":[{"by":"$.n","order":"descending"}]},{"name":"rest"}]},
 {"feed":"x","kind":"collection","exclusive":True,"bins":[{"name":"a","filter":"@.t == 'A'","sort":[{"by":"$.s"}]},{"name":"z"}]},
 {"feed":"list","kind":"array","type":"$.t","multiple":True},{"feed":"one","kind":"single"},
 {"feed":"all","kind":"composed","children":["one","c","list"]},{"feed":"tabs","kind":"segmented","children":["x","c/hi","all"]},
 {"feed":"slots","kind":"slots","contents":{"L":"list","C":"c/hi"},"pattern":["L","L","C"],"repeatables":["L"]}]
def mutate(c,k):
    for i in range(k):
        c.ask('update',{'feed':'c','element':el(rnd.randrange(80))}); c.ask('update',{'feed':'x','elements':[el(rnd.randrange(30)) for _ in range(3)]})
        c.ask('insert',{'feed':'list','elements':[el(i)],'at':[0]})
        if i%3==0: c.ask('move',{'feed':'list','from':0,'to':rnd.randrange(i+1)}); c.ask('delete',{'feed':'c','id':rnd.randrange(80)})
        if i%4==0: c.ask('put',{'feed':'one','element':el(i)}); c.ask('activate',{'feed':'tabs','child':i//4%3})
        if i%5==0: c.ask('select',{'feed':'list','at':[[0,0]]}); c.ask('transaction',{'ops':[{'method':'update','params':{'feed':'c','element':el(90)}},{'method':'remove','params':{'feed':'list','at':[0]}}]})
def run(name,how):
    shutil.rmtree(name,ignore_errors=True)
    args=[D,'--socket',os.path.abspath('s'),'--state',os.path.abspath(name),'--durability','disk','--log-level','warning']
    def start(): return subprocess.Popen(args)
    p=start(); c=C('s')
    for d in defs: r=c.ask('define',d); assert 'result' in r,r
    c.ask('watch',{'feed':'c'}); mutate(c,7)
    if how=='both':
        p.send_signal(signal.SIGTERM); p.wait(); p=start(); time.sleep(.3); c=C('s'); mutate(c,5)
    lines=[]
    for f in ['all','c','c/hi','c/rest','list','one','slots','tabs','x','x/a','x/z']:
        r=c.ask('verify',{'feed':f})['result']; lines.append(f"{f} {r['revision']} {r['digest']}")
    p.send_signal(signal.SIGTERM if how=='image' else signal.SIGKILL); p.wait()
    for e in ['feedd.lock','feedd.sqlite-shm']:
        try: os.unlink(f'{name}/{e}')
        except OSError: pass
    open(f'{name}/digests','w').write('\n'.join(lines)+'\n')
for n in ['journal','image','both']: run(n,n)
